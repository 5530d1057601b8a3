import { Transform } from 'node:stream'

/** Forwards bytes at a limited speed. */
export function slowLink({ bytesPerMs }: { bytesPerMs: number }): Transform {
  return new Transform({
    transform(bytes: Buffer, _, done) {
      setTimeout(() => done(null, bytes), bytes.length / bytesPerMs)
    },
  })
}
