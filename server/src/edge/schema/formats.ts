import * as Format from 'typebox/format'
import { parseRfc3339 } from '../../platform/time/rfc3339.ts'
import { parseExclusion } from '../event/exclusion-text.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
/** Lenient, but catches typos: exactly one @, no whitespace, and text on both sides. */
const EMAIL = /^[^\s@]{1,64}@[^\s@]{1,255}$/

/**
 * Registers our own versions of the contract's formats, because TypeBox's accept `urn:uuid:`, second 60 and a
 * space between date and time. TypeBox's registry is global to the process.
 */
export function registerFormats(): void {
  Format.Set('uuid', (text) => UUID.test(text))
  Format.Set('date-time', (text) => parseRfc3339(text) !== null)
  Format.Set('email', (text) => EMAIL.test(text))
  Format.Set('uri', (text) => URL.canParse(text))
  Format.Set('exclusion', (text) => parseExclusion(text) !== null)
}
