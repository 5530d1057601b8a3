import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Witness } from '../edge/witness/witness.ts'
import { serveWitness } from '../edge/witness/serve-witness.ts'
import { OperatorError } from '../errors.ts'
import { type SigningKey, signingKeyOf } from '../outlet/proof/signing-key.ts'
import { createLogger } from '../platform/logger.ts'
import { openFolderStore } from '../platform/object-store/folder-store.ts'
import { refuseOccupiedPort } from '../platform/refuse-occupied-port.ts'
import { Secret } from '../platform/secret/secret.ts'
import { readSmallFile } from '../platform/small-file.ts'
import type { StopSignals } from '../platform/stop-signals.ts'
import { systemClock as clock } from '../platform/time/clock.ts'
import {
  COSIGNATURE,
  decodeBase64,
  LOG_SIGNATURE,
  noteKeyText,
  parseNoteKey,
} from '../platform/tlog/signed-note.ts'

const KEY_BYTES = 32
const KEY_FILE = 'witness.key'
const STATE_FOLDER = 'state'
const STATE_BYTES_MAX = 64 * 1_024

export type WitnessCommandOptions = {
  listen: string
  logKey: string[]
  originPrefix: string
  name: string
  folder: string
}

/** `annals witness`: cosigns the checkpoints of a log until it receives a stop signal. */
export async function runWitness(
  { listen, logKey, originPrefix, name, folder }: WitnessCommandOptions,
  stopSignals: StopSignals,
): Promise<void> {
  const at = parseListen(listen)
  const logKeys = logKey.map(parseLogKey)
  if (!/^[^\s+]+\/$/.test(originPrefix)) {
    throw new OperatorError(
      '--origin-prefix must end with a slash and have no spaces and no plus signs, such as "audit.example/".',
    )
  }
  if (!/^[^\s+]{1,255}$/.test(name)) {
    throw new OperatorError('--name must have no spaces and no plus signs.')
  }
  await refuseOccupiedPort(at, {
    port: 'choose another one in --listen',
    address: 'Choose another address in --listen.',
  })
  const key = loadKey(folder)
  const vkey = noteKeyText({ name, type: COSIGNATURE, publicKey: key.publicKey })
  const logger = createLogger('info')
  await using storage = openFolderStore(join(folder, STATE_FOLDER), {
    objectBytesMax: STATE_BYTES_MAX,
  })
  const witness = new Witness({ logKeys, originPrefix, name, ...key, storage, clock })
  const stop = new AbortController()
  stopSignals.onStop(() => stop.abort())
  await using listener = await serveWitness({ witness, vkey, logger }, at)
  const url = `http://${at.host.includes(':') ? `[${at.host}]` : at.host}:${listener.port}`
  logger.info({ event: 'witness.started', url, vkey, originPrefix })
  if (!stop.signal.aborted) await once(stop.signal, 'abort')
}

function parseListen(text: string): { host: string; port: number } {
  const [, host = '', port = ''] = /^\[?([^\]]+?)\]?:(\d{1,5})$/.exec(text) ?? []
  if (host === '' || Number(port) > 65_535) {
    throw new OperatorError(
      `--listen must be an address and a port, such as 127.0.0.1:8090. Got "${text}".`,
    )
  }
  return { host, port: Number(port) }
}

/** Also accepts a verifier key of the log, whose name doesn't matter: each workspace has its own. */
function parseLogKey(text: string): Buffer {
  const bytes = decodeBase64(text)
  if (bytes?.length === KEY_BYTES) return bytes
  const key = parseNoteKey(text)
  if (key?.type === LOG_SIGNATURE) return key.publicKey
  throw new OperatorError(
    '--log-key must be a public key of the log: 32 bytes in base64, as in /.well-known/annals.json, or a verifier key.',
  )
}

/**
 * Creates the key at the first start, and the folder of the state with it. Never only that folder: without its
 * state, a witness would cosign a fork.
 */
function loadKey(folder: string): SigningKey {
  const path = join(folder, KEY_FILE)
  if (!existsSync(path)) {
    mkdirSync(join(folder, STATE_FOLDER), { recursive: true, mode: 0o700 })
    const seed = `${randomBytes(KEY_BYTES).toString('base64')}\n`
    writeFileSync(path, seed, { mode: 0o600, flag: 'wx', flush: true })
  }
  const seed = decodeBase64(readSmallFile(path).trim())
  if (seed?.length !== KEY_BYTES) {
    throw new OperatorError(`${path} must contain 32 bytes in base64. Restore it from a backup.`)
  }
  return signingKeyOf(new Secret(seed))
}
