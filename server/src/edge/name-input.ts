import { Type } from 'typebox'
import { ApiError } from '../errors.ts'

/** A user-defined name. `readName` checks the rest. */
export const Name = Type.String({ minLength: 1, maxLength: 200 })

/** Names appear in lists and mail, so they are trimmed and must be a single line. */
export function readName(text: string): string {
  const name = text.trim()
  if (name !== '' && !CONTROLS.test(name)) return name
  const message = name === '' ? 'must not be blank' : 'must not contain control characters'
  throw new ApiError('invalid_request', {
    message: `The request does not match the schema: /name ${message}.`,
    details: [{ path: '/name', message }],
  })
}

/** The name of something that doesn't need one. */
export function readOptionalName(text: string | undefined): string | null {
  return text === undefined ? null : readName(text)
}

/** Also those that reverse text, which could make a name look like another one. */
const CONTROLS = /[\p{Cc}\p{Zl}\p{Zp}\u202A-\u202E\u2066-\u2069]/u
