/* Parsers of values that several options share. */

export function text(value: string): string {
  if (value === '') throw new Error('must not be empty')
  return value
}

export function textUpTo(lengthMax: number): (value: string) => string {
  return (value) => {
    if (value.trim() === '' || value.length > lengthMax) {
      throw new Error(`must have 1 to ${lengthMax} characters`)
    }
    return value
  }
}

export function integer(min: number, max: number): (value: string) => number {
  return (value) => {
    const parsed = /^\d+$/.test(value) ? Number(value) : Number.NaN
    if (parsed >= min && parsed <= max) return parsed
    throw new Error(`must be an integer from ${min} to ${max}, got "${value}"`)
  }
}

export function choice<const T extends readonly string[]>(
  allowed: T,
): (value: string) => T[number] {
  return (value) => {
    const found = allowed.find((item) => item === value)
    if (found === undefined) throw new Error(`must be one of ${allowed.join(', ')}, got "${value}"`)
    return found
  }
}

export function list<T>(parse: (value: string) => T): (value: string) => readonly T[] {
  return (value) =>
    value
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '')
      .map(parse)
}

/** Error messages leave out the value, because it may contain a password. */
export function url(value: string, protocols: readonly string[]): string {
  if (!URL.canParse(value) || !protocols.includes(new URL(value).protocol)) {
    throw new Error(`must be a URL that starts with ${protocols.join(' or ')}`)
  }
  return value
}
