/** Levels of objects and arrays; the outermost container is level 1. */
export const JSON_DEPTH_MAX = 32

/** What is wrong with a text, and where. The message is a sentence for its sender. */
export type JsonFault = {
  kind: 'syntax' | 'value'
  path: string
  offset: number
  message: string
}

/** The text is refused: `syntax` when it is no JSON, `value` when we cannot keep what it says. */
export class StrictJsonError extends Error {
  override name = 'StrictJsonError'
  readonly kind: JsonFault['kind']
  /** JSON pointer (RFC 6901) to the fault, or to the container that it lies in. */
  readonly path: string
  /** Bytes before the fault. */
  readonly offset: number

  constructor(fault: JsonFault) {
    super(fault.message)
    this.kind = fault.kind
    this.path = fault.path
    this.offset = fault.offset
  }
}

/** A path goes into answers and logs, and keys may be as long as a body. */
const PATH_CHARS_MAX = 500
const TOKEN_CHARS_MAX = 40

/** RFC 6901, cut where it gets too long. */
export function jsonPointer(path: readonly (string | number)[]): string {
  let whole = ''
  for (const step of path) {
    const name = typeof step === 'string' ? escapePointer(step.slice(0, PATH_CHARS_MAX + 1)) : step
    whole += `/${name}`
    if (whole.length > PATH_CHARS_MAX) return `${whole.slice(0, PATH_CHARS_MAX).toWellFormed()}…`
  }
  return whole
}

/** One step of a pointer. */
export function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}

/** A token of the text as a message shows it. */
export function shown(text: string): string {
  return JSON.stringify(shorten(text))
}

export function shorten(text: string): string {
  return text.length > TOKEN_CHARS_MAX ? `${text.slice(0, TOKEN_CHARS_MAX)}…` : text
}
