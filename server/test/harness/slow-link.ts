import { Transform } from 'node:stream'

/** Passes bytes on at a certain speed. */
export function slowLink({ bytesPerMs }: { bytesPerMs: number }): Transform {
  return new Transform({
    transform(bytes: Buffer, _, done) {
      setTimeout(() => done(null, bytes), bytes.length / bytesPerMs)
    },
  })
}
