import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import {
  base64,
  consistencyPath,
  createNoteKey,
  createWitnessKey,
  inclusionPath,
  signCheckpoint,
  treeRoot,
} from '../harness/proof/naive-log.ts'
import { coreTextOf, createRows, leavesOf, ledgerKey } from '../harness/proof/provable-export.ts'
import { runVerifier, temporaryFiles, verifierModule } from '../harness/proof/verifier.ts'

/** Where Debian's golang-golang-x-mod-dev installs the sources. */
const GO_SOURCES = '/usr/share/gocode'
const ORACLE = join(import.meta.dirname, '../harness/proof/tlog-oracle.go')
const { isIncluded, consistencyProblem } = verifierModule
const write = temporaryFiles()
const cache = mkdtempSync(join(tmpdir(), 'annals-go-'))
after(() => rmSync(cache, { recursive: true }))

type Question = { verdict: boolean; question: object }

test('Go agrees with the verifier on notes, leaf hashes and proofs, valid or not', (t) => {
  const hasGo = spawnSync('go', ['version']).status === 0
  if (!hasGo || !existsSync(join(GO_SOURCES, 'src/golang.org/x/mod/sumdb/tlog'))) {
    return t.skip('needs Debian’s golang-go and golang-golang-x-mod-dev')
  }
  const questions = [...notes(), ...entries(), ...proofs()]
  assert(questions.some(({ verdict }) => verdict) && questions.some(({ verdict }) => !verdict))
  const { stdout, stderr, status } = spawnSync('go', ['run', ORACLE], {
    input: questions.map(({ question }) => `${JSON.stringify(question)}\n`).join(''),
    encoding: 'utf8',
    env: {
      ...process.env,
      GO111MODULE: 'off',
      GOPROXY: 'off',
      GOFLAGS: '',
      GOPATH: GO_SOURCES,
      GOCACHE: cache,
    },
  })
  assert.equal(status, 0, stderr)
  const answers = stdout.trimEnd().split('\n')
  assert.equal(answers.length, questions.length)
  for (const [index, { verdict, question }] of questions.entries()) {
    assert.equal(answers[index], String(verdict), JSON.stringify(question))
  }
})

function notes(): Question[] {
  const leaves = leavesOf(createRows(9))
  const key = ledgerKey()
  const good = signCheckpoint(leaves, [key, createWitnessKey('witness.example', 1)])
  const foreign = signCheckpoint(leaves, [createNoteKey(key.name)])
  const texts = [good, foreign, good.replace('\n9\n', '\n8\n'), good.replace('\n\n', '\n'), '']
  return texts.map((note) => {
    const args = ['checkpoint', write('note.txt', note), '--vkey', key.vkey]
    const { code } = runVerifier(args)
    return { verdict: code === 0, question: { kind: 'note', note, vkey: key.vkey } }
  })
}

function entries(): Question[] {
  return createRows(30).map((row) => {
    const leaf = Buffer.from(row.hash, 'hex').toString('base64')
    return { verdict: true, question: { kind: 'entry', entry: coreTextOf(row), leaf } }
  })
}

function proofs(): Question[] {
  const leaves = leavesOf(createRows(300))
  return Array.from({ length: 100 }, () => 1 + randomInt(leaves.length)).flatMap((size) => {
    const root = treeRoot(leaves, 0, size)
    const index = randomInt(size)
    const oldSize = 1 + randomInt(size)
    return [
      ...variants(inclusionPath(index, leaves, 0, size)).map((hashes) =>
        inclusionQuestion(leaves[index] ?? root, index, size, hashes, root),
      ),
      ...variants(consistencyPath(oldSize, leaves, size)).map((hashes) =>
        consistencyQuestion(
          { size: oldSize, root: treeRoot(leaves, 0, oldSize) },
          { size, root },
          hashes,
        ),
      ),
    ]
  })
}

function variants(path: readonly Buffer[]): Buffer[][] {
  return [[...path], path.slice(1), [...path, Buffer.alloc(32)], path.toReversed()]
}

function inclusionQuestion(
  leaf: Buffer,
  index: number,
  size: number,
  hashes: readonly Buffer[],
  root: Buffer,
): Question {
  return {
    verdict: isIncluded(leaf, index, size, hashes, root),
    question: {
      kind: 'inclusion',
      leaf: leaf.toString('base64'),
      index,
      size,
      hashes: base64(hashes),
      root: root.toString('base64'),
    },
  }
}

type Checkpoint = { size: number; root: Buffer }

function consistencyQuestion(older: Checkpoint, newer: Checkpoint, hashes: Buffer[]): Question {
  return {
    verdict: consistencyProblem(older, newer, hashes) === null,
    question: {
      kind: 'consistency',
      oldSize: older.size,
      oldRoot: older.root.toString('base64'),
      size: newer.size,
      root: newer.root.toString('base64'),
      hashes: base64(hashes),
    },
  }
}
