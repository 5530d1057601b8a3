import { Type } from 'typebox'
import { ApiError } from '../../errors.ts'

/** A name that people give to things; `readName` says the rest. */
export const Name = Type.String({ minLength: 1, maxLength: 200 })

/** Names stand in lists and mails: blanks around them are dropped, and one line is all they have. */
export function readName(text: string): string {
  const name = text.trim()
  if (name !== '' && !CONTROLS.test(name)) return name
  const message = name === '' ? 'must not be blank' : 'must not contain control characters'
  throw new ApiError('invalid_request', {
    message: `The request does not match the schema: /name ${message}.`,
    details: [{ path: '/name', message }],
  })
}

const CONTROLS = /\p{Cc}|\p{Zl}|\p{Zp}/u
