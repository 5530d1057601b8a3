import * as Format from 'typebox/format'
import { parseRfc3339 } from '../../platform/rfc3339.ts'
import { parseExclusion } from '../exclusion-text.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
/** As loose as mail itself, as strict as typing errors need: one @, no blanks, both sides there. */
const EMAIL = /^[^\s@]{1,64}@[^\s@]{1,255}$/

/**
 * The formats of the contract as we read them. The stock ones admit `urn:uuid:`, second 60 and a
 * blank between date and time. The registry belongs to TypeBox and is one for the process.
 */
export function registerFormats(): void {
  Format.Set('uuid', (text) => UUID.test(text))
  Format.Set('date-time', (text) => parseRfc3339(text) !== null)
  Format.Set('email', (text) => EMAIL.test(text))
  Format.Set('uri', (text) => URL.canParse(text))
  Format.Set('exclusion', (text) => parseExclusion(text) !== null)
}
