import { COSIGNATURE, type NoteKey, parseNoteKey } from './signed-note.ts'

/** A witness that gets every checkpoint. */
export type WitnessSetting = {
  /** The base of `/add-checkpoint`, without a trailing slash. */
  url: string
  /** The text of its key, which identifies it. */
  vkey: string
  key: NoteKey
}

const WITNESSES_MAX = 10
const URL_LENGTH_MAX = 500
const NAME_LENGTH_MAX = 255

/**
 * Parses a comma-separated list. A witness has one state per log, so two of its cosignatures prove no more than
 * one.
 */
export function parseWitnesses(text: string): readonly WitnessSetting[] {
  const items = text.split(',').map((item) => item.trim())
  const parsed = items.filter((item) => item !== '').map(parseWitness)
  if (parsed.length > WITNESSES_MAX) throw new Error(`must contain at most ${WITNESSES_MAX}`)
  const names = new Set(parsed.map(({ key }) => key.name))
  if (names.size < parsed.length) throw new Error('must not contain duplicate witness names')
  return parsed
}

/** Parses a URL and a verifier key, separated by spaces. Throws if they can't be used. */
export function parseWitness(text: string): WitnessSetting {
  const [url = '', vkey = '', ...rest] = text.split(/\s+/)
  if (vkey === '' || rest.length > 0) {
    throw new Error(
      'must contain a URL and a verifier key for each witness, separated by a space, with commas between witnesses',
    )
  }
  if (!isPlainUrl(url)) {
    throw new Error(
      'must contain URLs that start with http: or https:, without a password and without parameters',
    )
  }
  const key = parseNoteKey(vkey)
  if (key?.type !== COSIGNATURE || key.name.length > NAME_LENGTH_MAX) {
    throw new Error(
      `must contain verifier keys of witnesses (C2SP tlog-cosignature with Ed25519), such as "witness.example+1a2b3c4d+BA…", got "${vkey}"`,
    )
  }
  return { url: url.replace(/\/+$/, ''), vkey, key }
}

function isPlainUrl(text: string): boolean {
  if (!URL.canParse(text) || text.length > URL_LENGTH_MAX) return false
  const { protocol, search, hash, username, password } = new URL(text)
  return ['http:', 'https:'].includes(protocol) && `${search}${hash}${username}${password}` === ''
}
