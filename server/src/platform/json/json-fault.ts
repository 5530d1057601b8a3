/** Levels of objects and arrays; the outermost container is level 1. */
export const JSON_DEPTH_MAX = 32

/** What is wrong with a text, and where. */
export type JsonFault = {
  /** `syntax` if the text isn't valid JSON, `value` if a value can't be stored exactly. */
  kind: 'syntax' | 'value'
  /** JSON pointer (RFC 6901) to the fault or to the container around it. */
  path: string
  /** The number of bytes before the fault. */
  offset: number
  /** A sentence for the caller. */
  message: string
}

/** What reading a text returns. */
export type JsonResult = { value: unknown; fault: null } | { value: null; fault: JsonFault }

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
