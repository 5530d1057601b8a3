import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { pathToFileURL } from 'node:url'
import type { TestApp } from '../app/start-app.ts'

export const VERIFIER_PATH = join(import.meta.dirname, '../../../../verifier/annals-verify.mjs')

type Io = { out: (text: string) => void; err: (text: string) => void; isTerminal: boolean }
type Checkpoint = { size: number; root: Buffer }
type VerifierModule = {
  run: (args: readonly string[], io: Io) => number
  isIncluded: (
    leaf: Buffer,
    index: number,
    size: number,
    hashes: readonly Buffer[],
    root: Buffer,
  ) => boolean
  consistencyProblem: (
    older: Checkpoint,
    newer: Checkpoint,
    hashes: readonly Buffer[],
  ) => string | null
}

/** The verifier is plain JavaScript, so its types are declared here. */
export const verifierModule: VerifierModule = await import(pathToFileURL(VERIFIER_PATH).href)

export type Verdict = { code: number; out: string; err: string }

/** Runs a command of the verifier in this process. */
export function runVerifier(args: readonly string[], isTerminal = false): Verdict {
  let out = ''
  let err = ''
  const code = verifierModule.run(args, {
    out: (text) => (out += text),
    err: (text) => (err += text),
    isTerminal,
  })
  return { code, out, err }
}

/** A folder for the files of a test. Returns a function that writes one and returns its path. */
export function temporaryFiles(): (name: string, content: string | Buffer | object) => string {
  const folder = mkdtempSync(join(tmpdir(), 'annals-verifier-'))
  after(() => rmSync(folder, { recursive: true }))
  return (name, content) => {
    const path = join(folder, name)
    const isRaw = typeof content === 'string' || Buffer.isBuffer(content)
    writeFileSync(path, isRaw ? content : JSON.stringify(content))
    return path
  }
}

type SignedWorkspace = { id: string; workspaceKey: string }

/** The keys come from another source than the manifest, as for an auditor. */
export async function vkeysOf(
  annals: TestApp,
  workspaces: readonly SignedWorkspace[],
): Promise<string[]> {
  const keys: string[] = []
  for (const { id, workspaceKey: key } of workspaces) {
    const headers = { accept: 'application/json' }
    const { json } = await annals.call('GET', `/v1/workspaces/${id}/checkpoint`, { key, headers })
    keys.push(json.vkey)
  }
  return keys
}

/** Verifies an export that was written with `write`. */
export function verifyExport(
  write: ReturnType<typeof temporaryFiles>,
  { file, manifest }: { file: string | Buffer; manifest: object },
  vkeys: readonly string[],
): Verdict {
  const files = [write('events', file), '--manifest', write('manifest.json', manifest)]
  return runVerifier(['export', ...files, ...vkeys.flatMap((vkey) => ['--vkey', vkey])])
}
