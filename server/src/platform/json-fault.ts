/** Levels of objects and arrays; the outermost container is level 1. */
export const JSON_DEPTH_MAX = 32

/** What is wrong with a text, and where. The message is a sentence for the caller. */
export type JsonFault = {
  kind: 'syntax' | 'value'
  path: string
  offset: number
  message: string
}

/** The text is rejected: `syntax` if it isn't valid JSON, `value` if a value can't be stored exactly. */
export class StrictJsonError extends Error {
  override name = 'StrictJsonError'
  readonly kind: JsonFault['kind']
  /** JSON pointer (RFC 6901) to the fault or to the container around it. */
  readonly path: string
  /** The number of bytes before the fault. */
  readonly offset: number

  constructor(fault: JsonFault) {
    super(fault.message)
    this.kind = fault.kind
    this.path = fault.path
    this.offset = fault.offset
  }

  /** The same fault in an enclosing text that has this one at `path`. */
  below(path: string): StrictJsonError {
    const { kind, offset, message } = this
    return new StrictJsonError({ kind, offset, message, path: `${path}${this.path}` })
  }

  /** The same fault in a text with `bytes` more bytes before it. */
  movedBy(bytes: number): StrictJsonError {
    const { kind, path } = this
    const offset = this.offset + bytes
    const suffix = `at byte ${this.offset}.`
    const message = this.message.endsWith(suffix)
      ? `${this.message.slice(0, -suffix.length)}at byte ${offset}.`
      : this.message
    return new StrictJsonError({ kind, path, offset, message })
  }
}

/** Paths appear in responses and logs, and keys may be as long as a body. */
const PATH_CHARS_MAX = 500
const TOKEN_CHARS_MAX = 40

/** A JSON pointer (RFC 6901), truncated if it is too long. */
export function jsonPointer(path: readonly (string | number)[]): string {
  let whole = ''
  for (const step of path) {
    const name = typeof step === 'string' ? escapePointer(step.slice(0, PATH_CHARS_MAX + 1)) : step
    whole += `/${name}`
    if (whole.length > PATH_CHARS_MAX) return `${whole.slice(0, PATH_CHARS_MAX).toWellFormed()}…`
  }
  return whole
}

/** Escapes one step of a JSON pointer. */
export function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}

/** Formats a token for an error message. */
export function quoted(text: string): string {
  return JSON.stringify(shorten(text))
}

export function shorten(text: string): string {
  return text.length > TOKEN_CHARS_MAX ? `${text.slice(0, TOKEN_CHARS_MAX)}…` : text
}
