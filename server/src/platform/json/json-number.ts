/**
 * Whether a double preserves the decimal value of a JSON number token.
 *
 * A value is preserved if it survives the round trip: the shortest decimal of the nearest double, which
 * every canonical form and `JSON.stringify` writes, has the same value as the token. This is true for 0.1,
 * 1.0, 1e2 and -0. It is false for 12345678901234567890 (becomes 12345678901234567000),
 * 0.1000000000000000055 (0.1), 1e400 (infinity) and 1e-400 (0). It is also false for 1152921504606846976:
 * this is 2^60 and thus a double, but it would be written as 1152921504606847000, and a reader of the
 * ledger would see a different number than the caller sent.
 */
export function fitsDouble(token: string): boolean {
  const value = Number(token)
  const shortest = String(value)
  if (shortest === token) return true
  return Number.isFinite(value) && normalDecimal(token) === normalDecimal(shortest)
}

const ZERO = 48

/** A normal form: the digits without leading and trailing zeros, and the power of ten of the last digit. */
function normalDecimal(token: string): string {
  const unsigned = token.startsWith('-') ? token.slice(1) : token
  const exponentAt = unsigned.search(/e/i)
  const mantissa = exponentAt < 0 ? unsigned : unsigned.slice(0, exponentAt)
  const exponent = exponentAt < 0 ? 0 : Number(unsigned.slice(exponentAt + 1))

  const pointAt = mantissa.indexOf('.')
  const fractionDigits = pointAt < 0 ? 0 : mantissa.length - pointAt - 1
  const digits = pointAt < 0 ? mantissa : mantissa.slice(0, pointAt) + mantissa.slice(pointAt + 1)

  const first = digits.search(/[1-9]/)
  if (first === -1) return '0'
  // A loop, because /0+$/ takes quadratic time on a long run of zeros in the middle.
  let end = digits.length
  while (digits.charCodeAt(end - 1) === ZERO) end -= 1

  return `${digits.slice(first, end)}e${exponent - fractionDigits + digits.length - end}`
}
