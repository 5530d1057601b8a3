#!/usr/bin/env node
// annals-verify checks exports, proofs and checkpoints of Annals offline. It is one file without dependencies
// for Node 18 or later, shares no code with the server, and follows docs/chain-format.md. It never opens a
// network connection, writes no file, and trusts only the keys on its command line.
import crypto from 'node:crypto'
import { closeSync, fstatSync, openSync, readFileSync, readSync, realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const HELP = `annals-verify: check exports, proofs and checkpoints of Annals, offline.

  annals-verify export FILE [--manifest FILE] --vkey VKEY... [--no-gaps] [--allow-late-start]
  annals-verify proof FILE --vkey VKEY... [--event FILE | --hash HEX]
  annals-verify consistency OLD NEW --proof FILE --vkey VKEY...
  annals-verify checkpoint FILE --vkey VKEY...

  export       Checks every row of a JSONL export. With its manifest, it also checks that the file is the one
               that was exported and that its events are in the signed ledger. CSV files can't be proven.
  proof        Checks that one event is in the signed ledger. FILE is the response of
               GET /v1/events/{eventId}/proof, as JSON or as a C2SP tlog-proof.
  consistency  Checks that the ledger of NEW contains the ledger of OLD, unchanged. OLD and NEW are
               checkpoints, and the proof is the response of GET /v1/workspaces/{workspaceId}/consistency.
  checkpoint   Checks who signed a checkpoint.

  --vkey VKEY         A key that you trust: of the ledger, or of a witness. Repeat it for several keys. Get it
                      from the operator, not from the files you check.
  --manifest FILE     The response of GET /v1/exports/{jobId}/manifest.
  --no-gaps           Treat a gap between two rows as tampering. Use it for exports without filters.
  --allow-late-start  Accept a COMPLETE export that may leave out matching events before its first one, such
                      as an export of hot events only.
  --event FILE        The event of a tlog-proof, as a row of a JSONL export.
  --hash HEX          The hash of the event of a tlog-proof.

Exit codes:
  0  Proven. The output says what was proven, and what was not.
  1  Tampered. The output says which event is wrong, and why.
  2  Cannot judge: wrong arguments, or a file or a key that is missing, unreadable or doesn't match.

Examples:
  annals-verify export events.jsonl --manifest manifest.json --vkey "$VKEY"
  annals-verify proof proof.json --vkey "$VKEY"
  annals-verify consistency january.txt february.txt --proof consistency.json --vkey "$VKEY"
`

const OPTIONS = {
  export: { files: 1, values: ['manifest', 'vkey'], flags: ['no-gaps', 'allow-late-start'] },
  proof: { files: 1, values: ['vkey', 'event', 'hash'], flags: [] },
  consistency: { files: 2, values: ['vkey', 'proof'], flags: [] },
  checkpoint: { files: 1, values: ['vkey'], flags: [] },
}
const COMMANDS = {
  export: runExport,
  proof: runProof,
  consistency: runConsistency,
  checkpoint: runCheckpoint,
}

const SMALL_FILE_BYTES_MAX = 64 << 20
const CHUNK_BYTES = 1 << 20
const LINE_BYTES_MAX = 16 << 20
const WORKSPACES_MAX = 10_000
const NOTE_SIGNATURES_MAX = 100
const DEPTH_MAX = 64
/** All digits of the largest double, and more. */
const NUMBER_LENGTH_MAX = 400
const PROGRESS_BYTES_MIN = 8 << 20
const PROGRESS_MS = 100
const DAY_MS = 86_400_000
/** How much later than its receipt an event can be stored, and how far the clocks of two servers may differ. */
const RECEIPT_MS_MAX = 300_000
const ZERO_HASH = '0'.repeat(64)
const PARTS = ['actor', 'metadata', 'resource']
/** In the order in which Annals writes them. */
const FIRST_FIELDS = 'id seq timestamp receivedAt companyId workspaceId projectId category action'
const ROW_FIELDS =
  `${FIRST_FIELDS} actor resource metadata traceId hash prevHash sealed salts`.split(' ')
const STUB_FIELDS = `stub ${FIRST_FIELDS} traceId prevHash sealed hash`.split(' ')
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const FILTER_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/
const YEAR_0000_MS = -62_167_219_200_000
const YEAR_10000_MS = 253_402_300_800_000
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const HEX_64 = /^[0-9a-f]{64}$/

/** The evidence contradicts a hash, a signature or a proof. */
class Tampered extends Error {}
/** There is not enough to decide. */
class CannotJudge extends Error {}

/** Runs one command and returns the exit code. */
export function run(args, io = PROCESS_IO) {
  try {
    if (args.includes('--help') || args.includes('-h')) {
      io.out(HELP)
      return 0
    }
    const { command, files, options } = parseArguments(args)
    const { title, proven, notProven, given = [] } = COMMANDS[command](files, options, io)
    const lists = [
      list('Proven', proven),
      list('Only as good as the manifest, which is not signed', given),
      list('Not proven', notProven),
    ]
    io.out(`PROVEN: ${title}\n\n${lists.join('')}`)
    return 0
  } catch (error) {
    if (error instanceof Tampered) {
      io.out(`TAMPERED: ${error.message}\n`)
      return 1
    }
    const reason =
      error instanceof CannotJudge ? error.message : `Unexpected error: ${error?.stack}`
    io.err(`CANNOT JUDGE: ${reason}\n`)
    return 2
  }
}

const PROCESS_IO = {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  isTerminal: Boolean(process.stderr.isTTY),
}

function list(heading, sentences) {
  if (sentences.length === 0) return ''
  return `${heading}:\n${sentences.map((sentence) => `  - ${sentence}\n`).join('')}`
}

function parseArguments([command, ...rest]) {
  if (command === undefined) throw new CannotJudge('No command is given. Run annals-verify --help.')
  if (!Object.hasOwn(OPTIONS, command))
    throw new CannotJudge(`There is no command ${show(command)}. Run annals-verify --help.`)
  const { files: filesCount, values, flags } = OPTIONS[command]
  const files = []
  const options = { vkey: [] }
  while (rest.length > 0) {
    const argument = rest.shift()
    if (!argument.startsWith('--')) {
      files.push(argument)
      continue
    }
    const [name, ...inline] = argument.slice(2).split('=')
    if (flags.includes(name) && inline.length === 0) options[name] = true
    else if (values.includes(name)) {
      const value = inline.length > 0 ? inline.join('=') : rest.shift()
      if (value === undefined) throw new CannotJudge(`--${name} needs a value.`)
      if (name === 'vkey') options.vkey.push(value)
      else if (name in options) throw new CannotJudge(`--${name} is given twice.`)
      else options[name] = value
    } else
      throw new CannotJudge(`${command} has no option ${show(argument)}. Run annals-verify --help.`)
  }
  if (files.length !== filesCount) {
    const expected = filesCount === 1 ? 'one file' : `${filesCount} files`
    throw new CannotJudge(`${command} needs ${expected}, but ${files.length} are given.`)
  }
  return { command, files, options: { ...options, keys: options.vkey.map(parseVkey) } }
}

// Commands

function runCheckpoint([file], { keys }) {
  const checkpoint = openCheckpoint(readNote(file), keys, show(file))
  return {
    title: `${show(file)} is a signed checkpoint of ${checkpoint.origin}.`,
    proven: [describeSigned(checkpoint), ...describeCosigned(checkpoint)],
    notProven: [
      'That this is the newest checkpoint, or that the signer showed the same ledger to others. To find out, compare it with other checkpoints (annals-verify consistency) or use witnesses.',
      ...describeUnknown(checkpoint),
    ],
  }
}

function runConsistency([oldFile, newFile], { keys, proof: proofFile }) {
  if (proofFile === undefined) throw new CannotJudge('--proof is missing.')
  const older = openCheckpoint(readNote(oldFile), keys, show(oldFile))
  const newer = openCheckpoint(readNote(newFile), keys, show(newFile))
  if (older.origin !== newer.origin)
    throw new CannotJudge(
      `The checkpoints belong to different ledgers: ${older.origin} and ${newer.origin}.`,
    )
  const { from, to, hashes } = readJson(proofFile)
  if (older.size > newer.size)
    throw new Tampered(
      `The ledger of ${show(newFile)} has ${events(newer.size)}, but the older one has ${events(older.size)}. A ledger never becomes shorter. If you swapped the files, run the command again with the older one first.`,
    )
  if (from !== older.size || to !== newer.size)
    throw new CannotJudge(
      `${show(proofFile)} is a proof from size ${show(from)} to ${show(to)}, but the checkpoints have the sizes ${older.size} and ${newer.size}.`,
    )
  const problem = consistencyProblem(older, newer, parseHashes(hashes, show(proofFile)))
  if (problem !== null)
    throw new Tampered(
      `${problem} Either the proof is wrong, or the first ${events(older.size)} of ${older.origin} were rewritten.`,
    )
  return {
    title: `The ledger of ${show(newFile)} extends the one of ${show(oldFile)}.`,
    proven: [
      `The first ${events(older.size)} of ${newer.origin} are the same in both checkpoints. The newer one has ${events(newer.size - older.size)} more.`,
      describeSigned(newer),
      ...describeCosigned(newer),
    ],
    notProven: ['What the events contain. Check an export or the proof of an event.'],
  }
}

function runProof([file], { keys, event: eventFile, hash }) {
  const text = readText(file)
  const isText = text.startsWith('c2sp.org/tlog-proof@')
  if (!isText && (eventFile !== undefined || hash !== undefined))
    throw new CannotJudge(
      '--event and --hash are for tlog-proofs. A JSON proof contains its event.',
    )
  const proof = isText ? parseTlogProof(text, file) : parseJsonProof(text, file)
  const event = isText ? readProvenEvent(proof, eventFile, hash) : verifiedEvent(proof.event)
  const checkpoint = openCheckpoint(proof.checkpoint, keys, show(file), event.workspaceId)
  const name = event.id === undefined ? `The event with the hash ${event.hash}` : nameOf(event)
  if (event.seq !== undefined && proof.index !== event.seq - 1)
    throw new Tampered(
      `${name}: the proof is for seq ${show(proof.index + 1)}, which is another event.`,
    )
  if (proof.size !== undefined && proof.size !== checkpoint.size)
    throw new Tampered(
      `${name}: the proof is for a ledger of size ${show(proof.size)}, but the checkpoint signs the size ${checkpoint.size}.`,
    )
  requireIncluded(event.hash, proof.index, checkpoint, proof.hashes, name)
  return {
    title: `${name} is in the ledger of ${checkpoint.origin}.`,
    proven: [
      `The event is number ${number(proof.index + 1)} of the ${events(checkpoint.size)} that the checkpoint signs.`,
      ...(event.id === undefined ? [] : [CONTENT_PROVEN]),
      describeSigned(checkpoint),
      ...describeCosigned(checkpoint),
    ],
    notProven: [
      ...(event.id === undefined ? ['What the event contains. Use --event to check it.'] : []),
      ...describeErased(event.erasedParts > 0 ? 1 : 0),
      CONTENT_NOT_PROVEN,
      ...describeUnknown(checkpoint),
    ],
  }
}

const CONTENT_PROVEN =
  'Its content is unchanged: actor, resource and metadata match their commitments, and all other fields match its hash.'
const CONTENT_NOT_PROVEN =
  'That the content is true. Annals proves that it stored what a client sent, and when, by its own clock.'

function parseJsonProof(text, file) {
  const { event, index, size, hashes, checkpoint } = parseJson(text, show(file))
  if (!isObject(event) || typeof checkpoint !== 'string' || !isCount(index) || !isCount(size))
    throw new CannotJudge(
      `${show(file)} is not a proof. A proof has the fields event, index, size, hashes and checkpoint.`,
    )
  return { event, index, size, hashes: parseHashes(hashes, show(file)), checkpoint }
}

/** c2sp.org/tlog-proof. */
function parseTlogProof(text, file) {
  const end = text.indexOf('\n\n')
  const lines = text.slice(0, end).split('\n')
  const isVersion1 = lines.shift() === 'c2sp.org/tlog-proof@v1'
  const extra = lines[0]?.startsWith('extra ') ? decodeBase64(lines.shift().slice(6)) : undefined
  const index = /^index (0|[1-9]\d{0,15})$/.exec(lines.shift() ?? '')?.[1]
  if (end < 0 || !isVersion1 || extra === null || index === undefined)
    throw new CannotJudge(`${show(file)} is not a tlog-proof of version 1.`)
  const hashes = parseHashes(lines, show(file))
  return { index: Number(index), hashes, checkpoint: text.slice(end + 2), extra }
}

/** A tlog-proof doesn't contain the event, except possibly as extra data. */
function readProvenEvent({ extra }, eventFile, hash) {
  if (eventFile !== undefined && hash !== undefined)
    throw new CannotJudge('Use --event or --hash, not both.')
  if (eventFile !== undefined) return verifiedEvent(readJson(eventFile))
  if (hash !== undefined) {
    if (!HEX_64.test(hash)) throw new CannotJudge('--hash needs 64 lowercase hex digits.')
    return { hash }
  }
  if (extra?.[0] === 0x7b) return verifiedEvent(parseJson(extra.toString(), 'The extra data'))
  throw new CannotJudge(
    'A tlog-proof does not contain the event. Use --event with its row of a JSONL export, or --hash.',
  )
}

function verifiedEvent(row) {
  if (!isObject(row)) throw new CannotJudge('The event is not a JSON object.')
  const name = () => nameOf(row)
  requireShape(row, ROW_FIELDS, name)
  if (row.seq === 1 && row.prevHash !== ZERO_HASH)
    throw new Tampered(`${name()}: it is the first event, but prevHash is not 64 zeros.`)
  return { ...row, erasedParts: verifyContent(rewrite(row, name), name) }
}

function requireIncluded(hash, index, checkpoint, hashes, name) {
  const leaf = Buffer.from(hash, 'hex')
  if (!isIncluded(leaf, index, checkpoint.size, hashes, checkpoint.root))
    throw new Tampered(
      `${name}: the proof does not lead to the signed root of ${checkpoint.origin} at size ${number(checkpoint.size)}. Either the proof is wrong, or the signed ledger has another event at this place.`,
    )
}

// Exports

function runExport([file], options, io) {
  const manifest =
    options.manifest === undefined ? null : readManifest(options.manifest, options.keys)
  const reader = openLines(file, io)
  try {
    if (manifest?.format === 'CSV') judgeCsv(file, reader, manifest)
    const ledger = new ExportCheck(options.keys.length === 0 ? null : manifest, options)
    while (reader.next()) ledger.add(reader)
    ledger.finish(reader)
    return requireKey(options, ledger.report(file))
  } finally {
    reader.close()
  }
}

/** Without a key, the checks find a file that contradicts itself, but anyone can invent a consistent one. */
function requireKey({ keys }, report) {
  if (keys.length > 0) return report
  throw new CannotJudge(
    `--vkey is missing, so nothing links the file to a ledger that Annals signed. Get the key of the ledger from its operator, and run this again with --manifest and --vkey. Without a key, only this was checked: ${report.title}\n\n${list('Consistent', report.proven)}${list('Not judged', report.notProven)}`,
  )
}

/** Checks the rows of a JSONL export, one after another. Keeps only the last row of each workspace. */
class ExportCheck {
  #manifest
  #workspaces = new Map()
  #current = null
  #needsEveryRow
  #allowLateStart
  #keys
  rows = 0
  stubs = 0
  erased = 0

  constructor(manifest, options) {
    this.#manifest = manifest
    this.#needsEveryRow = options['no-gaps'] === true || manifest?.isGapless === true
    this.#allowLateStart = options['allow-late-start'] === true
    this.#keys = options.keys
  }

  add(line) {
    const written = readWritten(line.buffer, line.start, line.end)
    const parsed = written === null ? parseLine(line) : null
    const row = written ?? parsed.value
    const isStub = row.stub !== undefined
    const name = () => nameOf(row, line.lineNumber)
    if (written === null) requireShape(row, isStub ? STUB_FIELDS : ROW_FIELDS, name)
    else if (!isPlain) line.decode()
    const workspace = this.#workspaceOf(row, name)
    requireNone(placeProblem(row, workspace, this.#needsEveryRow), name)
    const erasedParts = verifyContent(written ?? rewrite(row, name), name)
    requireNone(parsed?.problem ?? null, name)
    requireNone(this.#filterProblem(row, isStub), name)
    if (isStub) this.stubs += 1
    else this.rows += 1
    if (erasedParts > 0) this.erased += 1
    workspace.append(row, isStub)
  }

  #workspaceOf(row, name) {
    if (this.#current?.workspaceId === row.workspaceId) return this.#current
    const known = this.#manifest?.workspaces.get(row.workspaceId)
    if (this.#manifest !== null && known === undefined)
      throw new Tampered(`${name()}: the manifest has no workspace ${row.workspaceId}.`)
    if (this.#workspaces.has(row.workspaceId))
      throw new Tampered(`${name()}: rows of another workspace precede it. Rows were moved.`)
    if (this.#workspaces.size === WORKSPACES_MAX)
      throw new CannotJudge(`The file has more than ${number(WORKSPACES_MAX)} workspaces.`)
    this.#current = new Workspace(row.workspaceId, known ?? null)
    this.#workspaces.set(row.workspaceId, this.#current)
    return this.#current
  }

  #filterProblem(row, isStub) {
    if (this.#manifest === null) return null
    if (isStub && this.#manifest.evidence !== 'COMPLETE')
      return 'it is a stub, but the manifest is not COMPLETE.'
    const isMatch = this.#manifest.matches(row)
    if (isStub && isMatch)
      return 'it matches the filters, but the file has only its stub. The row was left out.'
    return isStub || isMatch ? null : 'it does not match the filters. The row was added.'
  }

  finish({ sha256, bytes }) {
    const manifest = this.#manifest
    if (manifest === null) {
      if (bytes === 0) throw new CannotJudge('The file is empty.')
      return
    }
    if (manifest.workspaces.size === 0)
      throw new CannotJudge('The manifest lists no workspaces, so nothing links it to a ledger.')
    for (const known of manifest.workspaces.values()) {
      const workspace =
        this.#workspaces.get(known.workspaceId) ?? new Workspace(known.workspaceId, known)
      verifyRange(workspace, manifest, this.#allowLateStart)
      this.#workspaces.set(known.workspaceId, workspace)
    }
    requireSameFile(manifest, this.rows, sha256)
    if (this.rows === 0 && manifest.evidence !== 'COMPLETE')
      throw new CannotJudge('The export has no rows. Only COMPLETE evidence can prove that.')
  }

  report(file) {
    const workspaces = [...this.#workspaces.values()]
    const manifest = this.#manifest
    const name = { NONE: 'an export', MEMBERSHIP: 'an export', COMPLETE: 'a complete export' }
    const stubs = this.stubs === 0 ? '' : ` and ${count(this.stubs, 'stub')}`
    const snapshotAt = manifest?.snapshotAt
    const asOf = snapshotAt ? `, as of ${snapshotAt}` : ''
    const scope = snapshotAt === null ? ' of archived events only' : ''
    const lines = `${count(this.rows, 'row')}${stubs} of ${count(workspaces.length, 'workspace')}`
    return {
      title:
        manifest === null
          ? `${show(file)} has ${lines}, and each matches its hash.`
          : `${show(file)} is ${name[manifest.evidence]}${scope} with ${lines}${asOf}.`,
      proven: [
        ...this.#contentSentences(),
        ...workspaces.flatMap((workspace) => workspace.proven(manifest)),
      ],
      given: this.#givenSentences(),
      notProven: [
        ...workspaces.flatMap((workspace) => workspace.notProven(manifest)),
        ...(manifest === null ? this.#withoutManifest() : this.#otherLedgers()),
        ...describeErased(this.erased),
        CONTENT_NOT_PROVEN,
      ],
    }
  }

  #contentSentences() {
    if (this.rows === 0) return []
    const rows = this.rows === 1 ? 'the row' : `each of the ${count(this.rows, 'row')}`
    return [`The content of ${rows} matches its commitments and its hash.`]
  }

  #givenSentences() {
    if (this.#manifest === null) return []
    const { filtersText, snapshotAt, evidence } = this.#manifest
    const undated = 'That the export is not older than you expect. The manifest has no time.'
    const time = `The time of the export. Compare it with the one you expect: ${snapshotAt}. Events received later are not part of it.`
    return [
      'The file has the SHA-256 and the number of rows of the manifest.',
      `The filters. Compare them with those you expect: ${filtersText}.`,
      ...(snapshotAt ? [time] : []),
      ...(snapshotAt === null ? ['That the export was requested for archived events only.'] : []),
      ...(snapshotAt === undefined && evidence === 'COMPLETE' ? [undated] : []),
    ]
  }

  #withoutManifest() {
    const unused = this.#keys.length > 0 ? ' The keys were not used.' : ''
    return [
      `That these events are in the signed ledger, and that none is missing at the start or at the end. Use --manifest to check that.${unused}`,
    ]
  }

  /** Someone could remove a whole workspace from both files. */
  #otherLedgers() {
    const known = [...this.#manifest.workspaces.values()].map(
      ({ checkpoint }) => checkpoint?.origin,
    )
    const given = this.#keys.filter(({ type }) => type === TYPE_ED25519).map(({ name }) => name)
    const others = [...new Set(given)].filter((name) => !known.includes(name))
    return others.map(
      (name) =>
        `Anything about the ledger ${name}. Its key was given, but the manifest doesn't list it.`,
    )
  }
}

/** What is kept of a workspace while its rows pass. */
class Workspace {
  rows = 0
  stubs = 0
  first = null
  last = null
  gaps = 0
  firstGap = ''
  /** Rows since the last gap: only these are connected with the last event. */
  connectedRows = 0

  constructor(workspaceId, known) {
    this.workspaceId = workspaceId
    this.known = known
  }

  append(row, isStub) {
    const { seq } = row
    if (this.last !== null && seq > this.last.seq + 1) {
      this.gaps += 1
      if (this.gaps === 1) this.firstGap = `between seq ${this.last.seq} and seq ${seq}`
      this.connectedRows = 0
    }
    if (isStub) this.stubs += 1
    else {
      this.rows += 1
      this.connectedRows += 1
    }
    this.first ??= row
    this.last = row
  }

  proven(manifest) {
    const { known, first, last } = this
    const checkpoint = known?.checkpoint
    const place = `Workspace ${this.workspaceId}`
    if (last === null) return this.#provenEmpty(place)
    const isSingle = first.seq === last.seq
    const range = isSingle ? `Seq ${first.seq} is` : `Seq ${first.seq} to ${last.seq} are`
    const sentences = []
    if (this.gaps === 0 && !isSingle) {
      sentences.push(`${place}: Seq ${first.seq} to ${last.seq} follow each other without a gap.`)
    }
    if (checkpoint) {
      const connected = this.connectedRows
      const all =
        this.gaps === 0 ? range : `The last ${count(connected, 'row')} ${isOrAre(connected)}`
      sentences.push(`${place}: ${all} in the signed ledger. ${describeSigned(checkpoint)}`)
      sentences.push(...describeCosigned(checkpoint))
    }
    if (manifest?.evidence === 'COMPLETE') {
      const others =
        this.stubs === 0 ? '' : ` The file has stubs of the ${events(this.stubs)} that don't match.`
      sentences.push(
        `${place}: no event from seq ${first.seq} to ${last.seq} that matches the filters is missing.${others}`,
      )
      if (known.startSentence) sentences.push(`${place}: ${known.startSentence}`)
      if (known.endSentence) sentences.push(`${place}: ${known.endSentence}`)
    }
    return sentences
  }

  /** A workspace without lines: what shows that it has no events in the range. */
  #provenEmpty(place) {
    const { checkpoint, before, startSentence, endSentence } = this.known ?? {}
    if (!checkpoint) return []
    const isEnd = checkpoint.size === (before?.seq ?? 0)
    if ((!isEnd && !endSentence) || (before !== null && !startSentence)) return []
    const sentences = [`${place}: it had no events.`]
    if (startSentence) sentences[0] = `${place}: no event matches the filters: ${startSentence}`
    if (!isEnd) sentences.push(endSentence)
    else if (before !== null) sentences.push('The signed ledger ends there.')
    sentences.push(describeSigned(checkpoint), ...describeCosigned(checkpoint))
    return [sentences.join(' ')]
  }

  notProven(manifest) {
    const { known, first, last } = this
    const place = `Workspace ${this.workspaceId}`
    const checkpoint = known?.checkpoint
    const sentences = []
    if (this.stubs > 0 && manifest === null) {
      sentences.push(
        `${place}: that the filters skipped the ${count(this.stubs, 'stub')}. Only the manifest has the filters.`,
      )
    }
    if (this.gaps > 0) {
      sentences.push(
        `${place}: that no row is missing in the ${count(this.gaps, 'gap')} of seq, the first ${this.firstGap}. ${manifest === null ? 'Filters cause gaps, but so do deleted rows.' : 'The filters may have skipped these events.'}`,
      )
    }
    if (checkpoint && this.rows > this.connectedRows && this.gaps > 0) {
      sentences.push(
        `${place}: that the ${count(this.rows - this.connectedRows, 'row')} before the last gap ${isOrAre(this.rows - this.connectedRows)} in the signed ledger. Check them with their own proofs, or with a COMPLETE export.`,
      )
    }
    if (known && !checkpoint)
      sentences.push(`${place}: anything about the signed ledger. The manifest has no checkpoint.`)
    if (known?.startDoubt) sentences.push(`${place}: ${known.startDoubt}`)
    else if (manifest?.evidence !== 'COMPLETE' && first !== null && first.seq > 1) {
      sentences.push(
        `${place}: anything about the ${events(first.seq - 1)} before seq ${first.seq}.`,
      )
    }
    const end = (last ?? known?.before)?.seq ?? 0
    if (checkpoint && checkpoint.size > end) {
      sentences.push(
        `${place}: anything about the ${events(checkpoint.size - end)} of the signed ledger after ${end === 0 ? 'its start' : `seq ${end}`}.`,
      )
    }
    if (known?.endDoubt) sentences.push(`${place}: ${known.endDoubt}`)
    return sentences.concat(checkpoint ? describeUnknown(checkpoint) : [])
  }
}

function requireNone(problem, name) {
  if (problem !== null) throw new Tampered(`${name()}: ${problem}`)
}

/** Checks 1 to 3 of the chain format, with gaps if they are allowed. Returns null if they pass. */
function placeProblem(row, { last }, needsEveryRow) {
  if (row.seq === 1 && row.prevHash !== ZERO_HASH)
    return 'it is the first event, but prevHash is not 64 zeros.'
  if (last === null) return null
  if (row.seq === last.seq)
    return `the event before it, ${last.id}, has the same seq. A row was added.`
  if (row.seq < last.seq) return `it follows seq ${last.seq}. Rows were moved or added.`
  const skipped = row.seq - last.seq - 1
  if (skipped > 0 && needsEveryRow)
    return `it follows event ${last.id} (seq ${last.seq}), so ${events(skipped)} in between ${isOrAre(skipped)} missing.`
  if (skipped === 0 && row.prevHash !== last.hash)
    return `prevHash is not the hash of the event before it, ${last.id}. One of the two was replaced.`
  if (row.id <= last.id)
    return `its id is not greater than that of the event before it, ${last.id}.`
  if (row.companyId !== last.companyId)
    return `it has another companyId than the event before it, ${last.id}.`
  return null
}

/** Compares the rows of a workspace with what the manifest says about it. */
function verifyRange(workspace, manifest, allowLateStart) {
  const { known, first, last } = workspace
  const { firstSeq, lastSeq, checkpoint, lastLeafProof } = known
  const place = `Workspace ${known.workspaceId}`
  if (last === null && firstSeq !== null)
    throw new Tampered(`${place}: seq ${firstSeq} to ${lastSeq} are missing.`)
  if (last !== null && first.seq !== firstSeq)
    throw new Tampered(
      `Event ${first.id} (seq ${first.seq}) is the first of workspace ${known.workspaceId} in the file, but the manifest starts at seq ${show(firstSeq)}. Rows at the start are missing or were added.`,
    )
  if (last !== null && last.seq !== lastSeq)
    throw new Tampered(
      `Event ${last.id} (seq ${last.seq}) is the last of workspace ${known.workspaceId} in the file, but the manifest ends at seq ${show(lastSeq)}. Rows at the end are missing or were added.`,
    )
  if (manifest.evidence === 'COMPLETE') verifyStart(workspace, manifest, allowLateStart)
  if (checkpoint === null && last !== null)
    throw new CannotJudge(
      `${place}: the manifest has no checkpoint, so nothing links its rows to the signed ledger. Get the manifest again, or check the file without it.`,
    )
  if (checkpoint === null) return
  const proven = last ?? known.before
  if (proven !== null) requireProven(proven, { lastLeafProof }, checkpoint)
  if (manifest.evidence === 'COMPLETE') verifyEnd(known, proven, last === null, manifest)
}

/** The proof is the value of the only field. */
function requireProven(event, proofs, checkpoint) {
  const [[field, proof]] = Object.entries(proofs)
  const name = `Event ${event.id} (seq ${event.seq})`
  if (proof === null) throw new CannotJudge(`${name}: the manifest has no ${field}.`)
  if (proof.index !== event.seq - 1 || proof.size !== checkpoint.size)
    throw new Tampered(
      `${name}: the ${field} of the manifest is for seq ${show(proof.index + 1)} at size ${show(proof.size)}, but this is event ${event.seq} and the checkpoint signs the size ${checkpoint.size}.`,
    )
  const hashes = parseHashes(proof.hashes, `The ${field}`)
  requireIncluded(event.hash, proof.index, checkpoint, hashes, name)
}

/** A COMPLETE export must show that no matching event precedes its first one. */
function verifyStart({ known, first }, { from, snapshotAt }, allowLateStart) {
  const place = `Workspace ${known.workspaceId}`
  const { before, checkpoint } = known
  if (checkpoint === null)
    throw new CannotJudge(`${place}: a COMPLETE manifest needs a checkpoint.`)
  if (before !== null) verifyBefore(known, first)
  const hasNoStart = first === null && before === null
  const isNewer = known.after !== null && known.after.seq === 1
  if (first?.seq === 1 || (hasNoStart && (checkpoint.size === 0 || isNewer))) return
  if (
    from !== null &&
    before !== null &&
    Date.parse(before.receivedAt) + DAY_MS < Date.parse(from)
  ) {
    known.startSentence = `seq ${before.seq}, the last event before the export, was received more than 24 hours before ${from}. Annals accepts timestamps up to 24 hours ahead, so no earlier event matches. This relies on the server's clock.`
    return
  }
  const start =
    first === null ? 'The manifest has no events of it' : `The export starts at seq ${first.seq}`
  const doubt =
    first === null
      ? 'that none of its events match the filters.'
      : `that none of the ${events(first.seq - 1)} before seq ${first.seq} match the filters.`
  if (hasNoStart && snapshotAt === null) {
    known.startDoubt = `${doubt} The manifest says that the export has archived events only.`
    return
  }
  if (from !== null && first !== null && first.receivedAt < from) {
    known.startDoubt = `${doubt} The first event of the export was received before ${from}, so earlier events match only if their timestamp is later than their receipt.`
    return
  }
  if (!allowLateStart)
    throw new CannotJudge(
      `${place}: ${start}, and nothing shows that earlier events don't match the filters. If that is intended, such as in an export of hot events only, use --allow-late-start.`,
    )
  known.startDoubt = doubt
}

/**
 * A COMPLETE export has all events that were stored when it was created. The next event of the ledger shows that it
 * was stored later.
 */
function verifyEnd(known, last, isEmpty, { snapshotAt }) {
  const { after, afterLeafProof, checkpoint, workspaceId } = known
  const endSeq = last?.seq ?? 0
  if (after === null) {
    if (checkpoint.size === endSeq) {
      known.endDoubt =
        'that this is the newest checkpoint. An older one would hide later events: compare it with one from another source.'
      return
    }
    const isOpen = (isEmpty && known.startDoubt !== undefined) || snapshotAt === null
    if (isOpen) return
    const end = isEmpty ? 'has none of its events' : `ends with seq ${endSeq}`
    throw new CannotJudge(
      `Workspace ${workspaceId}: the export ${end}, but its signed ledger has seq ${endSeq + 1} to ${checkpoint.size}. Nothing shows that they were received after the export. Get the manifest again.`,
    )
  }
  const name = () => `${nameOf(after)}, which follows the export`
  verifyStub(after, name)
  const isNext = after.seq === endSeq + 1 && after.prevHash === (last?.hash ?? ZERO_HASH)
  if (!isNext || after.workspaceId !== workspaceId)
    throw new Tampered(`${name()}: it is not the event after the last one of the export.`)
  requireProven(after, { afterLeafProof }, checkpoint)
  if (typeof snapshotAt !== 'string')
    throw new CannotJudge(`${name()}: the manifest has no snapshotAt to compare it with.`)
  if (Date.parse(after.receivedAt) + RECEIPT_MS_MAX < Date.parse(snapshotAt))
    throw new Tampered(
      `${nameOf(after)}: it was received at ${after.receivedAt}, before the export at ${snapshotAt}, but the export ${endSeq === 0 ? 'has no events of its workspace' : `ends with seq ${endSeq}`}. ${events(checkpoint.size - endSeq)} of the signed ledger may have been left out.`,
    )
  if (Date.parse(after.receivedAt) < Date.parse(snapshotAt)) {
    known.endDoubt = `that no event before the export at ${snapshotAt} is missing at its end. The next event, seq ${after.seq}, was received up to 5 minutes earlier, at ${after.receivedAt}, and may have been stored later.`
    return
  }
  known.endSentence = `Seq ${after.seq}, the next event of the ledger, was received at ${after.receivedAt}, which is not before the export. This relies on the server's clock.`
}

/** The events before and after the range are in the manifest as stubs. */
function verifyStub(stub, name) {
  requireShape(stub, STUB_FIELDS, name)
  verifyContent(rewrite(stub, name), name)
}

function verifyBefore({ before, workspaceId }, first) {
  const name = () => `${nameOf(before)}, which precedes the export`
  verifyStub(before, name)
  const isPrevious =
    first === null || (first.seq === before.seq + 1 && first.prevHash === before.hash)
  if (!isPrevious || before.workspaceId !== workspaceId)
    throw new Tampered(`${name()}: it is not the event before the first one of the file.`)
}

function requireSameFile({ rows, sha256: expected }, actualRows, sha256) {
  const actual = count(actualRows, 'row')
  if (rows !== actualRows)
    throw new Tampered(`The manifest has ${count(rows, 'row')}, but the file has ${actual}.`)
  if (sha256 !== expected)
    throw new Tampered(
      `The file has the SHA-256 ${sha256}, but the manifest has ${show(expected)}. The file or the manifest was changed.`,
    )
}

/** The manifest isn't signed, so a file that matches it proves nothing. */
function judgeCsv(file, reader, manifest) {
  requireSameFile(manifest, manifest.rows, reader.hashAll())
  throw new CannotJudge(
    `${show(file)} matches the SHA-256 in the manifest, but the manifest is not signed, and a CSV file has no salts or commitments, so nothing links its rows to the signed ledger. Export JSONL to prove them.`,
  )
}

// Manifests and filters

function readManifest(file, keys) {
  const manifest = readJson(file)
  const { version, format, filters, rows, sha256, evidence, snapshotAt, workspaces } = manifest
  if (version !== 1) {
    const advice = isCount(version) ? 'Use a newer annals-verify' : 'Check what it contains'
    throw new CannotJudge(`${show(file)} is not a manifest of version 1. ${advice}.`)
  }
  const isValid =
    ['JSONL', 'CSV'].includes(format) &&
    ['NONE', 'MEMBERSHIP', 'COMPLETE'].includes(evidence) &&
    typeof sha256 === 'string' &&
    Array.isArray(workspaces) &&
    toCount(rows) !== null
  if (!isValid) throw new CannotJudge(`${show(file)} is not a complete manifest.`)
  const compiled = compileFilters(filters ?? {}, evidence)
  const entries = workspaces.map((entry) => readManifestWorkspace(entry, manifest, keys))
  const byId = new Map(entries.map((entry) => [entry.workspaceId, entry]))
  if (byId.size !== entries.length) throw new CannotJudge(`${show(file)} has a workspace twice.`)
  return {
    ...compiled,
    format,
    evidence,
    rows: toCount(rows),
    sha256,
    snapshotAt: typeof snapshotAt === 'string' ? toTime(snapshotAt) : snapshotAt,
    workspaces: byId,
    isGapless: evidence === 'COMPLETE' || !compiled.selects,
  }
}

function readManifestWorkspace(entry, { format, evidence }, keys) {
  const place = `Workspace ${show(entry?.workspaceId)} of the manifest`
  const { workspaceId, origin, checkpoint } = isObject(entry) ? entry : {}
  if (typeof workspaceId !== 'string' || !UUID.test(workspaceId))
    throw new CannotJudge(`${place}: the workspaceId is not a UUID.`)
  const firstSeq = toCount(entry.firstSeq)
  const lastSeq = toCount(entry.lastSeq)
  const known = { workspaceId, firstSeq, lastSeq, checkpoint: null, ...NO_PROOFS }
  if (format === 'CSV' || keys.length === 0 || typeof checkpoint !== 'string') return known
  known.checkpoint = openCheckpoint(checkpoint, keys, place, workspaceId)
  if (origin !== known.checkpoint.origin)
    throw new Tampered(
      `${place}: the origin is ${show(origin)}, but the checkpoint is of ${known.checkpoint.origin}.`,
    )
  const proofs = evidence === 'COMPLETE' ? Object.keys(NO_PROOFS) : ['lastLeafProof']
  for (const field of proofs) if (isObject(entry[field])) known[field] = entry[field]
  return known
}

const NO_PROOFS = { lastLeafProof: null, before: null, after: null, afterLeafProof: null }
const CORE_FILTERS = ['category', 'action', 'projectId', 'traceId', 'workspaceId']

/** The filters that only need fields of the core. A COMPLETE export can't have others. */
function compileFilters(filters, evidence) {
  if (!isObject(filters)) throw new CannotJudge('The filters of the manifest are not an object.')
  const tests = []
  const given = Object.entries(filters).filter(([, value]) => value !== null)
  for (const [field, value] of given) {
    const test = compileFilter(field, value)
    if (test !== null) tests.push(test)
    else if (evidence === 'COMPLETE')
      throw new CannotJudge(
        `The manifest is COMPLETE, but nothing can prove that for the filter ${show(field)}.`,
      )
  }
  return {
    matches: (row) => tests.every((test) => test(row)),
    from: filters.from === undefined || filters.from === null ? null : toTime(filters.from),
    selects: given.some(([field]) => field !== 'workspaceId'),
    filtersText: given.length === 0 ? 'none' : printable(JSON.stringify(filters)),
  }
}

function compileFilter(field, value) {
  if (field === 'from' || field === 'to') {
    const time = toTime(value)
    return field === 'from' ? (row) => row.timestamp >= time : (row) => row.timestamp < time
  }
  if (field === 'anyOf' || field === 'not') return compileValues(field, value)
  if (!CORE_FILTERS.includes(field)) return null
  if (typeof value !== 'string') throw new CannotJudge(`The filter ${show(field)} is not a string.`)
  return (row) => row[field] === value
}

/** Lists of `field:value`, which the dashboard sets. */
function compileValues(name, values) {
  const byField = new Map()
  for (const text of Array.isArray(values) ? values : [null]) {
    const [, field, value] = /^(\w+):(.*)$/s.exec(String(text)) ?? []
    if (!CORE_FILTERS.includes(field)) return null
    byField.set(field, (byField.get(field) ?? new Set()).add(value))
  }
  const fields = [...byField]
  return name === 'anyOf'
    ? (row) => fields.every(([field, allowed]) => allowed.has(row[field]))
    : (row) => !fields.some(([field, excluded]) => excluded.has(row[field]))
}

/** Times are compared as text, so years must have four digits. */
function toTime(value) {
  const time = new Date(isText(value) && FILTER_TIME.test(value) ? value : NaN)
  const isInRange = time.getTime() >= YEAR_0000_MS && time.getTime() < YEAR_10000_MS
  if (!isInRange) throw new CannotJudge(`The manifest has no valid time: ${show(value)}.`)
  return time.toISOString()
}

// Events

function parseLine(line) {
  const text = line.decode()
  if (text.startsWith('id,seq,'))
    throw new CannotJudge("The file is a CSV export, which can't be proven. Export JSONL.")
  const parsed = parseText(text)
  const place = `Line ${number(line.lineNumber)}`
  if (parsed === null)
    throw new Tampered(`${place} is not valid JSON. The file was changed or is damaged.`)
  if (!isObject(parsed.value)) throw new Tampered(`${place} is not an event.`)
  return parsed
}

/**
 * Each field of the format exists and has its type, and there are no others, which no hash would cover. The
 * types matter: the core contains most values without escapes.
 */
function requireShape(row, fields, name) {
  for (const field of fields) {
    const value = row[field]
    if (value === undefined) throw new Tampered(`${name()}: the field ${field} is missing.`)
    if (!IS_VALID.get(field)(value))
      throw new Tampered(`${name()}: the field ${field} has an invalid value.`)
  }
  const keys = Object.keys(row)
  if (keys.length === fields.length) return
  const unknown = keys.find((field) => !fields.includes(field))
  throw new Tampered(
    `${name()}: the field ${show(unknown)} is not part of the format, and no hash covers it. It was added, or your Annals is newer than this verifier: then use the one that it serves.`,
  )
}

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value)
const isCount = (value) => Number.isSafeInteger(value) && value >= 0
const isText = (value) => typeof value === 'string'
const isUuid = (value) => isText(value) && UUID.test(value)
const isTime = (value) => isText(value) && TIME.test(value)
const isHash = (value) => isText(value) && HEX_64.test(value)
const isSeq = (value) => isCount(value) && value >= 1

const IS_VALID = new Map([
  ...['id', 'companyId', 'workspaceId'].map((field) => [field, isUuid]),
  ...['timestamp', 'receivedAt'].map((field) => [field, isTime]),
  ...['category', 'action'].map((field) => [field, isText]),
  ...['hash', 'prevHash'].map((field) => [field, isHash]),
  ...['sealed', 'salts'].map((field) => [field, isObject]),
  ...PARTS.map((field) => [field, (value) => value === null || isObject(value)]),
  ['seq', isSeq],
  ['projectId', (value) => value === null || isUuid(value)],
  ['traceId', (value) => value === null || isText(value)],
  ['stub', (value) => value === true],
])

/** Checks 4 to 6 of the chain format for the row that was read last. Returns how many parts are erased. */
function verifyContent(row, name) {
  let erasedParts = 0
  if (row.stub === undefined) {
    const { sealed, salts } = row
    erasedParts += verifyPart('actor', row.actor, sealed.actor, salts.actor, name)
    erasedParts += verifyPart('metadata', row.metadata, sealed.metadata, salts.metadata, name)
    erasedParts += verifyPart('resource', row.resource, sealed.resource, salts.resource, name)
  }
  if (sha256(leafOf(row), 'hex') !== row.hash)
    throw new Tampered(
      `${name()}: its content does not match its hash. At least one of its fields was changed.`,
    )
  return erasedParts
}

/** Returns 1 if the part is erased, and 0 otherwise. */
function verifyPart(part, range, commitment, salt, name) {
  if (range === null) {
    if (salt === undefined) return commitment === undefined ? 0 : 1
    throw new Tampered(`${name()}: ${part} was removed, but its salt is still there.`)
  }
  if (commitment === undefined || salt === undefined) {
    const missing = commitment === undefined ? 'commitment' : 'salt'
    throw new Tampered(`${name()}: ${part} has no ${missing}.`)
  }
  if (!isCommitment(commitment, part, salt, range))
    throw new Tampered(
      `${name()}: ${part} does not match its commitment. It or its salt was changed.`,
    )
  return 0
}

/** A zero byte, as in RFC 6962, and the core. */
function leafOf(row) {
  const { companyId, id, prevHash, projectId, receivedAt, seq, timestamp, workspaceId } = row
  const project = projectId === null ? 'null' : `"${projectId}"`
  return (
    `\0{"action":${quote(row.action)},"category":${quote(row.category)},"companyId":"${companyId}",` +
    `"id":"${id}","prevHash":"${prevHash}","projectId":${project},"receivedAt":"${receivedAt}",` +
    `"sealed":${text.slice(row.sealed.start, row.sealed.end)},"seq":${seq},"timestamp":"${timestamp}",` +
    `"traceId":${quote(row.traceId)},"v":1,"workspaceId":"${workspaceId}"}`
  )
}

function quote(value) {
  return isPlain && value !== null ? `"${value}"` : JSON.stringify(value)
}

// Lines as Annals writes them

/** The line that is being read, in a buffer. Loops over bytes are several times as fast as over characters. */
let bytes = Buffer.alloc(0)
let base = 0
/** Has one character per byte, so that positions are the same in both. */
let text = ''
/** How much of the line was read, or -1 if it is not as expected. */
let at = 0
/** Whether its strings have only ASCII characters and no escapes. */
let isPlain = true

const HASH_64 = `"${'x'.repeat(64)}"`
const TIME_24 = '"9999-99-99T99:99:99.999Z"'
const UUID_36 = '"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"'
/** In a pattern, `x` stands for a hex digit, `9` for a decimal digit, and all else for itself. */
const pattern = (expected) => new Uint8Array(Buffer.from(expected))
const FORMS = { timestamp: TIME_24, receivedAt: TIME_24, hash: HASH_64, prevHash: HASH_64 }
Object.assign(FORMS, { companyId: UUID_36, workspaceId: UUID_36 })
const PATTERNS = {
  ...Object.fromEntries(
    ROW_FIELDS.map((name) => [name, pattern(`,"${name}":${FORMS[name] ?? ''}`)]),
  ),
  stub: pattern('{"stub":true,'),
  idOfStub: pattern(`{"stub":true,"id":${UUID_36}`),
  id: pattern(`{"id":${UUID_36}`),
  uuid: pattern(UUID_36),
  commitment: pattern('x'.repeat(64)),
  salt: pattern('x'.repeat(32)),
  null: pattern('null'),
  quote: pattern('"'),
  nothing: pattern(''),
  empty: pattern('{}'),
  end: pattern('}'),
}
const [FIRST_PART, NEXT_PART] = ['{', ','].map((start) =>
  PARTS.map((part) => pattern(`${start}"${part}":"`)),
)

/** Whether a byte contradicts a byte of a pattern: at `(pattern << 8) | byte`. */
const DIFFERS = new Uint8Array(128 << 8).fill(1)
for (let code = 0; code < 128; code += 1) {
  const char = String.fromCharCode(code)
  const allowed = { x: '0123456789abcdef', 9: '0123456789' }[char] ?? char
  for (const one of allowed) DIFFERS[(code << 8) | one.charCodeAt(0)] = 0
}

/**
 * Reads a line that is exactly as Annals writes it: all fields in order, in canonical JSON. That takes a
 * fraction of the time of JSON.parse and of writing the parts again to compare them. Returns null for other
 * lines. Of the parts, their commitments and their salts, the row has only the positions.
 */
function readWritten(buffer, start, end) {
  bytes = buffer
  base = start
  text = buffer.toString('latin1', start, end)
  at = 0
  isPlain = true
  const isStub = isAt(PATTERNS.stub)
  const row = {
    stub: isStub ? true : undefined,
    id: take(isStub ? PATTERNS.idOfStub : PATTERNS.id, 36),
    seq: Number(takeValue(PATTERNS.seq, endOfInteger)),
    timestamp: take(PATTERNS.timestamp, 24),
    receivedAt: take(PATTERNS.receivedAt, 24),
    companyId: take(PATTERNS.companyId, 36),
    workspaceId: take(PATTERNS.workspaceId, 36),
    projectId: takeNull(PATTERNS.projectId) ? null : take(PATTERNS.uuid, 36),
    category: unquote(takeValue(PATTERNS.category, endOfCanonicalString)),
    action: unquote(takeValue(PATTERNS.action, endOfCanonicalString)),
    actor: isStub ? null : takePart(PATTERNS.actor),
    resource: isStub ? null : takePart(PATTERNS.resource),
    metadata: isStub ? null : takePart(PATTERNS.metadata),
    traceId: takeNull(PATTERNS.traceId)
      ? null
      : unquote(takeValue(PATTERNS.nothing, endOfCanonicalString)),
    hash: isStub ? '' : take(PATTERNS.hash, 64),
    prevHash: take(PATTERNS.prevHash, 64),
    sealed: null,
    salts: null,
  }
  row.sealed = takeHexFields(PATTERNS.sealed, PATTERNS.commitment, row)
  if (isStub) row.hash = take(PATTERNS.hash, 64)
  else row.salts = takeHexFields(PATTERNS.salts, PATTERNS.salt, row)
  skip(PATTERNS.end)
  return at === text.length && isSeq(row.seq) ? row : null
}

function isAt(expected) {
  const line = bytes
  const start = base + at
  let differs = 0
  for (let index = 0; index < expected.length; index += 1)
    differs |= DIFFERS[(expected[index] << 8) | line[start + index]]
  return differs === 0
}

function skip(expected) {
  if (at >= 0) at = isAt(expected) ? at + expected.length : -1
}

/** Reads a pattern that ends with a quoted value of this length. */
function take(expected, length) {
  skip(expected)
  return text.slice(at - length - 1, at - 1)
}

/** Reads a label and a value, whose end `endOf` finds. */
function takeValue(label, endOf) {
  skip(label)
  const start = at
  if (at >= 0) at = endOf(at)
  return text.slice(start, at)
}

/** Reads a label, and also null if it follows. */
function takeNull(label) {
  skip(label)
  if (at < 0 || !isAt(PATTERNS.null)) return false
  skip(PATTERNS.null)
  return true
}

/** Reads an object or null, and returns where the object is. */
function takePart(label) {
  if (takeNull(label)) return null
  const from = at
  if (at >= 0) at = bytes[base + at] === OPEN_BRACE ? endOfCanonical(at, 0) : -1
  return { from, to: at }
}

/** Reads `sealed` or `salts`, and returns where the digits of each part start. */
function takeHexFields(label, digits, row) {
  skip(label)
  const start = at
  const actor = takeHexField(FIRST_PART[0], digits, row.actor)
  const metadata = takeHexField((at === start ? FIRST_PART : NEXT_PART)[1], digits, row.metadata)
  const resource = takeHexField((at === start ? FIRST_PART : NEXT_PART)[2], digits, row.resource)
  skip(at === start ? PATTERNS.empty : PATTERNS.end)
  return { start, end: at, actor, metadata, resource }
}

/** What belongs to a part that is there is compared with its commitment, and needs no other check. */
function takeHexField(label, digits, range) {
  if (at < 0 || !isAt(label)) return undefined
  skip(label)
  const from = at
  if (range === null) skip(digits)
  else at += digits.length
  skip(PATTERNS.quote)
  return from
}

function unquote(value) {
  if (isPlain || at < 0) return value.slice(1, -1)
  return JSON.parse(Buffer.from(value, 'latin1').toString())
}

/** The position after the canonical JSON at `start`, or -1 if it is not canonical. */
function endOfCanonical(start, depth) {
  const byte = bytes[base + start]
  if (byte === QUOTE) return endOfCanonicalString(start)
  if (byte === OPEN_BRACE) return endOfMembers(start, depth, CLOSE_BRACE)
  if (byte === OPEN_BRACKET) return endOfMembers(start, depth, CLOSE_BRACKET)
  if (byte >= LOWER_A) return endOfMatch(LITERAL, text, start) || -1
  const integerEnd = endOfInteger(start)
  if (integerEnd > 0) return integerEnd
  const end = endOfMatch(NUMBER, text, start)
  const number = text.slice(start, end)
  return String(Number(number)) === number ? end : -1
}

const endOfInteger = (start) => endOfMatch(INTEGER, text, start) || -1

/** The keys of an object ascend, so none appears twice. */
function endOfMembers(start, depth, close) {
  if (depth === DEPTH_MAX) return -1
  if (bytes[base + start + 1] === close) return start + 2
  let [lastKey, lastKeyEnd] = [-1, -1]
  for (let index = start + 1; ; index += 1) {
    if (close === CLOSE_BRACE) {
      const end = endOfCanonicalString(index)
      if (end < 0 || bytes[base + end] !== COLON) return -1
      if (lastKey >= 0 && !isBefore(lastKey, lastKeyEnd, index, end)) return -1
      lastKey = index
      lastKeyEnd = end
      index = end + 1
    }
    index = endOfCanonical(index, depth + 1)
    const byte = index < 0 ? 0 : bytes[base + index]
    if (byte === close) return index + 1
    if (byte !== COMMA) return -1
  }
}

/** Whether the key from `start` to `end` sorts before the other one, by UTF-16 code units. */
function isBefore(start, end, otherStart, otherEnd) {
  if (!isPlain) return unquote(text.slice(start, end)) < unquote(text.slice(otherStart, otherEnd))
  const line = bytes
  const length = Math.min(end - start, otherEnd - otherStart) - 1
  for (let index = 1; index < length; index += 1) {
    const difference = line[base + start + index] - line[base + otherStart + index]
    if (difference !== 0) return difference < 0
  }
  return end - start < otherEnd - otherStart
}

function endOfCanonicalString(start) {
  const line = bytes
  if (line[base + start] !== QUOTE) return -1
  const end = base + text.length
  for (let index = base + start + 1; index < end; index += 1) {
    const byte = line[index]
    if (byte === QUOTE) return index + 1 - base
    if (byte < 0x20) return -1
    if (byte > 0x7f) isPlain = false
    if (byte === BACKSLASH) return endOfEscapedString(start)
  }
  return -1
}

function endOfEscapedString(start) {
  const end = endOfString(text, start)
  const value = Buffer.from(text.slice(start, end), 'latin1').toString()
  isPlain = false
  try {
    return JSON.stringify(JSON.parse(value)) === value ? end : -1
  } catch {
    return -1
  }
}

/** Writes a parsed row as Annals does, and reads it again. */
function rewrite(row, name) {
  requireHexFields(row.sealed, 64, 'sealed', name)
  if (row.stub === undefined) requireHexFields(row.salts, 32, 'salts', name)
  const fields = row.stub === undefined ? ROW_FIELDS : STUB_FIELDS
  const members = fields.map((field) => `"${field}":${canonical(row[field], 0, name)}`)
  const line = Buffer.from(`{${members.join(',')}}`)
  const written = readWritten(line, 0, line.length)
  if (written === null) throw new CannotJudge(`${name()}: it can't be written as canonical JSON.`)
  return written
}

function requireHexFields(fields, digits, field, name) {
  for (const [part, value] of Object.entries(fields)) {
    if (!PARTS.includes(part))
      throw new Tampered(`${name()}: ${field} has a field that is not a part of an event.`)
    if (!isText(value) || value.length !== digits || !/^[0-9a-f]*$/.test(value))
      throw new Tampered(`${name()}: ${field}.${part} has an invalid value.`)
  }
}

/** Also names rows whose fields are not valid. */
function nameOf({ id, seq }, lineNumber) {
  const line = lineNumber === undefined ? '' : `, line ${number(lineNumber)}`
  return `Event ${isUuid(id) ? id : show(id)} (seq ${show(seq)}${line})`
}

// Canonical JSON (RFC 8785)

function canonical(value, depth, name) {
  // As ECMAScript writes it. That includes -0, which it writes as 0.
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  if (depth === DEPTH_MAX) throw new Tampered(`${name()}: it is nested too deeply.`)
  if (Array.isArray(value)) {
    return `[${value.map((item) => canonical(item, depth + 1, name)).join(',')}]`
  }
  // By UTF-16 code units, which is how JavaScript compares strings.
  const keys = Object.keys(value).sort()
  const members = keys.map(
    (key) => `${JSON.stringify(key)}:${canonical(value[key], depth + 1, name)}`,
  )
  return `{${members.join(',')}}`
}

const SPACE = /[ \t\n\r]*/y
const NUMBER = /[-+.\deE]+/y
const INTEGER = /(?:0|[1-9]\d{0,14})(?![-+.\deE])/y
const LITERAL = /true|false|null/y
const [QUOTE, COMMA, COLON, BACKSLASH, LOWER_A] = [0x22, 0x2c, 0x3a, 0x5c, 0x61]
const [OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d]

/**
 * Reads JSON key by key, because JSON.parse of Node 24 can mistake a key with an escape for one that it read before.
 * Returns the value and, if other parsers may read it differently, the problem. Returns null if it is not JSON.
 */
function parseText(text) {
  let problem = null
  let at = 0
  const next = () => {
    at = endOfMatch(SPACE, text, at)
    return text[at]
  }
  /** Reads a value that is not an object or array. */
  const take = (end) => {
    const token = text.slice(at, end)
    at = end
    return JSON.parse(token)
  }
  const readNumber = () => {
    const literal = text.slice(at, endOfMatch(NUMBER, text, at))
    const value = take(at + literal.length)
    // The shortest decimal of the nearest double may have another value.
    const isLong = literal.length > NUMBER_LENGTH_MAX
    if (isLong || decimalOf(literal) !== decimalOf(String(value)))
      problem ??= `the number ${show(literal)} can't be represented exactly. It was changed.`
    return value
  }
  const readKey = (members) => {
    if (next() !== '"') throw new SyntaxError()
    const key = take(endOfString(text, at))
    if (next() !== ':') throw new SyntaxError()
    at += 1
    if (members.has(key)) problem ??= `the field ${show(key)} appears twice.`
    return key
  }
  const readMembers = (isObject, depth) => {
    if (depth > 2 * DEPTH_MAX) throw new SyntaxError()
    const close = isObject ? '}' : ']'
    const members = new Map()
    at += 1
    let char = next()
    if (char === close) at += 1
    while (char !== close) {
      members.set(isObject ? readKey(members) : members.size, readValue(depth))
      char = text[at]
      if (char !== close && char !== ',') throw new SyntaxError()
      at += 1
    }
    return isObject ? Object.fromEntries(members) : [...members.values()]
  }
  const readValue = (depth) => {
    const char = next()
    let value
    if (char === '{' || char === '[') value = readMembers(char === '{', depth + 1)
    else if (char === '"') value = take(endOfString(text, at))
    else value = char >= 'a' ? take(endOfMatch(LITERAL, text, at)) : readNumber()
    next()
    return value
  }
  try {
    const value = readValue(0)
    return at === text.length ? { value, problem } : null
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}

function endOfString(text, start) {
  let end = text.indexOf('"', start + 1)
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end + 1
}

function isEscaped(text, index) {
  let start = index
  while (text[start - 1] === '\\') start -= 1
  return (index - start) % 2 === 1
}

function endOfMatch(pattern, text, index) {
  pattern.lastIndex = index
  pattern.test(text)
  return pattern.lastIndex
}

function decimalOf(literal) {
  const [, sign, whole, fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([-+]?\d+))?$/.exec(literal) ?? []
  if (whole === undefined) return NaN
  const digits = (whole + fraction).replace(/^0+/, '')
  const significant = digits.replace(/0+$/, '')
  if (significant === '') return '0'
  return `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`
}

// Hashes

/** crypto.hash, which Node 18 lacks, is about twice as fast for short inputs. */
const sha256 =
  typeof crypto.hash === 'function'
    ? (data, encoding) => crypto.hash('sha256', data, encoding)
    : (data, encoding) => crypto.createHash('sha256').update(data).digest(encoding)

/** The values of hex digits, by their byte. Other bytes have one that no digit has. */
const HEX_VALUES = new Uint16Array(256).fill(1 << 12)
for (let value = 0; value < 16; value += 1) HEX_VALUES[value.toString(16).charCodeAt(0)] = value

/** The byte that two hex digits of the line stand for, or more than 255. */
function hexByteAt(start) {
  return HEX_VALUES[bytes[base + start]] * 16 + HEX_VALUES[bytes[base + start + 1]]
}

const HMAC_BLOCK_BYTES = 64
const VIEWS_MAX = 1_024
/** What is hashed of each part: the salt, the prefix and the value. */
const inner = Object.fromEntries(PARTS.map((part) => [part, newInner(part, 1 << 12)]))
const outerBlock = Buffer.alloc(HMAC_BLOCK_BYTES + 32, 0x5c)

function newInner(part, valueBytesMax) {
  const prefix = Buffer.from(`annals/v1/${part}\0`)
  const start = HMAC_BLOCK_BYTES + prefix.length
  const block = Buffer.alloc(start + valueBytesMax, 0x36)
  prefix.copy(block, HMAC_BLOCK_BYTES)
  return { block, start, views: Array(VIEWS_MAX).fill(undefined) }
}

/** Whether the line has the HMAC-SHA-256 of a part. crypto.createHmac takes three times as long. */
function isCommitment(commitment, part, salt, { from, to }) {
  const length = to - from
  let hashed = inner[part]
  if (hashed.block.length < hashed.start + length) hashed = inner[part] = newInner(part, 2 * length)
  const { block, start, views } = hashed
  let saltBits = 0
  for (let index = 0; index < 16; index += 1) {
    const byte = hexByteAt(salt + 2 * index)
    saltBits |= byte
    block[index] = byte ^ 0x36
    outerBlock[index] = byte ^ 0x5c
  }
  bytes.copy(block, start, base + from, base + to)
  // Short views are kept, because creating one takes about as long as hashing it.
  const view = views[length] ?? block.subarray(0, start + length)
  if (length < VIEWS_MAX && views[length] === undefined) views[length] = view
  // Digests have one character per byte, because hex digits take longer.
  const digest = sha256(view, 'latin1')
  for (let index = 0; index < 32; index += 1)
    outerBlock[HMAC_BLOCK_BYTES + index] = digest.charCodeAt(index)
  const hmac = sha256(outerBlock, 'latin1')
  let differs = saltBits >> 8
  for (let index = 0; index < 32; index += 1)
    differs |= hmac.charCodeAt(index) ^ hexByteAt(commitment + 2 * index)
  return differs === 0
}

/** RFC 9162, section 2.1.3.2, whose trees are those of RFC 6962. */
export function isIncluded(leaf, index, size, hashes, root) {
  if (!isCount(index) || !isCount(size) || index >= size) return false
  let hash = leaf
  const problem = followPath(index, size - 1, hashes, (sibling, isLeft) => {
    hash = isLeft ? hashNode(sibling, hash) : hashNode(hash, sibling)
  })
  return problem === null && hash.equals(root)
}

/** RFC 9162, section 2.1.4.2. Returns a sentence, or null if `newer` extends `older`. */
export function consistencyProblem(older, newer, hashes) {
  if (older.size === newer.size) {
    if (!older.root.equals(newer.root))
      return `The two checkpoints have the same size, ${older.size}, but different roots.`
    return hashes.length === 0 ? null : 'The proof has hashes, but the two sizes are equal.'
  }
  if (older.size === 0) {
    return hashes.length === 0 ? null : 'The proof has hashes, but the older size is 0.'
  }
  const isPowerOfTwo = 2 ** Math.round(Math.log2(older.size)) === older.size
  const path = isPowerOfTwo ? [older.root, ...hashes] : [...hashes]
  let node = older.size - 1
  let lastNode = newer.size - 1
  for (; node % 2 === 1; node = Math.floor(node / 2)) lastNode = Math.floor(lastNode / 2)
  let oldHash = path.shift()
  let newHash = oldHash
  if (oldHash === undefined || hashes.length === 0) return 'The proof is too short.'
  const problem = followPath(node, lastNode, path, (sibling, isLeft) => {
    if (isLeft) oldHash = hashNode(sibling, oldHash)
    newHash = isLeft ? hashNode(sibling, newHash) : hashNode(newHash, sibling)
  })
  if (problem !== null) return problem
  const otherRootOf = (which) => `The proof does not lead to the root of the ${which} checkpoint.`
  if (!oldHash.equals(older.root)) return otherRootOf('older')
  return newHash.equals(newer.root) ? null : otherRootOf('newer')
}

/** Passes each sibling on the way to the root, and whether it is on the left. Returns a sentence, or null. */
function followPath(start, last, siblings, add) {
  let [node, lastNode] = [start, last]
  for (const sibling of siblings) {
    if (lastNode === 0) return 'The proof is too long.'
    const isLeft = node % 2 === 1 || node === lastNode
    add(sibling, isLeft)
    if (isLeft) for (; node % 2 === 0 && node !== 0; node /= 2) lastNode = Math.floor(lastNode / 2)
    node = Math.floor(node / 2)
    lastNode = Math.floor(lastNode / 2)
  }
  return lastNode === 0 ? null : 'The proof is too short.'
}

function hashNode(left, right) {
  return crypto.createHash('sha256').update('\x01').update(left).update(right).digest()
}

// Keys, signed notes and checkpoints (C2SP)

const TYPE_ED25519 = 1
const TYPE_COSIGNATURE = 4
/** The DER encoding of an Ed25519 public key, up to the key. */
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex')

/** c2sp.org/signed-note, "Verifier keys". */
export function parseVkey(text) {
  const [, name, id, encoded] = /^([^+\s]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/.exec(text) ?? []
  const material = encoded === undefined ? null : decodeBase64(encoded)
  if (material === null)
    throw new CannotJudge(`--vkey ${show(text)} is not a key. A key looks like name+1a2b3c4d+AQ….`)
  const type = material[0]
  if ((type !== TYPE_ED25519 && type !== TYPE_COSIGNATURE) || material.length !== 33)
    throw new CannotJudge(
      `--vkey ${show(text)} is not an Ed25519 key, and only those are supported.`,
    )
  const digest = crypto.createHash('sha256').update(`${name}\n`).update(material).digest('hex')
  if (digest.slice(0, 8) !== id)
    throw new CannotJudge(`--vkey ${show(text)} has a typo: its ID doesn't match its name and key.`)
  const der = Buffer.concat([SPKI_PREFIX, material.subarray(1)])
  const publicKey = crypto.createPublicKey({ key: der, format: 'der', type: 'spki' })
  return { name, id, type, publicKey }
}

/** c2sp.org/signed-note, "Format". */
function parseNote(note, what) {
  const end = note.lastIndexOf('\n\n')
  const lines = note.slice(end + 2).split('\n')
  if (end < 0 || lines.pop() !== '' || /[^\n\u0020-\ufffc\ufffe\uffff]/.test(note))
    throw new CannotJudge(`${what} is not a signed note.`)
  if (lines.length === 0 || lines.length > NOTE_SIGNATURES_MAX)
    throw new CannotJudge(
      `${what} has ${lines.length} signatures, but 1 to ${NOTE_SIGNATURES_MAX} are allowed.`,
    )
  const signatures = lines.map((line) => {
    const [, name, encoded] = /^— ([^+\s]+) (\S+)$/.exec(line) ?? []
    const bytes = encoded === undefined ? null : decodeBase64(encoded)
    if (bytes === null || bytes.length < 5)
      throw new CannotJudge(`${what} has a line that is not a signature: ${show(line)}.`)
    return { name, id: bytes.toString('hex', 0, 4), bytes: bytes.subarray(4) }
  })
  return { text: note.slice(0, end + 1), signatures }
}

/**
 * Verifies a checkpoint: c2sp.org/tlog-checkpoint and c2sp.org/tlog-cosignature. Signatures of unknown keys are
 * ignored, as the specification requires.
 */
function openCheckpoint(note, keys, what, workspaceId) {
  if (keys.length === 0)
    throw new CannotJudge('--vkey is missing. Get the key of the ledger from its operator.')
  const { text, signatures } = parseNote(note, what)
  const verified = []
  const unknown = []
  for (const signature of signatures) {
    const key = keys.find(({ name, id }) => name === signature.name && id === signature.id)
    if (key === undefined) {
      unknown.push(`${printable(signature.name)} (key ID ${signature.id})`)
      continue
    }
    const cosignedAt = verifySignature(text, signature, key)
    if (cosignedAt === null)
      throw new Tampered(
        `${what}: the signature of ${printable(key.name)} is wrong. The checkpoint was changed or forged.`,
      )
    if (!verified.some((one) => one.key === key)) verified.push({ key, cosignedAt })
  }
  const { origin, size, root } = parseCheckpoint(text, what)
  const signers = verified.filter(({ key }) => key.type === TYPE_ED25519 && key.name === origin)
  const witnesses = verified.filter(({ key }) => key.type === TYPE_COSIGNATURE)
  if (signers.length === 0)
    throw new CannotJudge(
      `${what} is a checkpoint of ${printable(origin)}, and none of the given keys with this name signed it. It has signatures of ${[...unknown, ...verified.map(({ key }) => printable(key.name))].join(', ')}. Either the key is missing, or the checkpoint is forged.`,
    )
  if (workspaceId !== undefined && !origin.endsWith(`/${workspaceId}`))
    throw new Tampered(
      `${what}: the checkpoint is of ${printable(origin)}, which is not the ledger of workspace ${workspaceId}.`,
    )
  return { origin: printable(origin), size, root, signers, witnesses, unknown }
}

/** Returns null if the signature is wrong, and the time of a cosignature or 0 otherwise. */
function verifySignature(text, { bytes }, { type, publicKey }) {
  const isCosignature = type === TYPE_COSIGNATURE
  if (bytes.length !== (isCosignature ? 72 : 64)) return null
  const seconds = isCosignature ? bytes.readBigUInt64BE(0) : 0n
  const message = isCosignature ? `cosignature/v1\ntime ${seconds}\n${text}` : text
  const signature = bytes.subarray(bytes.length - 64)
  return crypto.verify(null, Buffer.from(message), publicKey, signature) ? Number(seconds) : null
}

function parseCheckpoint(text, what) {
  const [origin, size = '', encoded = ''] = text.split('\n')
  const root = decodeBase64(encoded)
  const isValid = origin !== '' && /^(0|[1-9]\d{0,15})$/.test(size) && isCount(Number(size))
  if (!isValid || root?.length !== 32)
    throw new CannotJudge(`${what} is a signed note, but not a checkpoint.`)
  if (size === '0' && root.toString('hex') !== sha256('', 'hex'))
    throw new Tampered(
      `${what}: the ledger is empty, but its root is not the hash of an empty tree.`,
    )
  return { origin, size: Number(size), root }
}

function describeSigned({ origin, size, root, signers }) {
  const ids = signers.map(({ key }) => key.id).join(' and ')
  return `The key ${ids} of ${origin} signed the ledger of ${events(size)} with the root ${root.toString('base64')}.`
}

function describeCosigned({ witnesses }) {
  return witnesses.map(({ key, cosignedAt }) => {
    const time = new Date(cosignedAt * 1000)
    const at = Number.isNaN(time.getTime()) ? `second ${cosignedAt}` : time.toISOString()
    return `The witness ${printable(key.name)} saw this ledger at ${at}, and that it extends all that it saw before.`
  })
}

function describeUnknown({ unknown }) {
  const reason = 'their keys were not given, so they were ignored'
  return unknown.length === 0 ? [] : [`The signatures of ${unknown.join(', ')}: ${reason}.`]
}

function describeErased(erased) {
  const unknown = 'what the parts contained, who erased them, and why'
  return erased === 0 ? [] : [`${events(erased)} with erased parts: ${unknown}.`]
}

// Files

function readNote(file) {
  const text = readText(file)
  if (!text.startsWith('{')) return text
  const { note } = parseJson(text, show(file))
  if (typeof note !== 'string') throw new CannotJudge(`${show(file)} is not a checkpoint.`)
  return note
}

function readText(file) {
  return accessFile(file, () => {
    const bytes = readFileSync(file)
    if (bytes.length > SMALL_FILE_BYTES_MAX) throw new CannotJudge(`${show(file)} is too large.`)
    const text = bytes.toString()
    if (!Buffer.from(text).equals(bytes)) throw new CannotJudge(`${show(file)} is not UTF-8.`)
    return text
  })
}

function accessFile(file, access) {
  try {
    return access()
  } catch (error) {
    if (error instanceof CannotJudge) throw error
    throw new CannotJudge(`${show(file)} can't be read: ${error?.message}.`)
  }
}

function readJson(file) {
  return parseJson(readText(file), show(file))
}

function parseJson(text, what) {
  const parsed = parseText(text)
  if (parsed === null) throw new CannotJudge(`${what} is not JSON.`)
  if (!isObject(parsed.value)) throw new CannotJudge(`${what} is not a JSON object.`)
  requireNone(parsed.problem, () => what)
  return parsed.value
}

function openLines(file, io) {
  return accessFile(file, () => {
    const descriptor = openSync(file, 'r')
    const status = fstatSync(descriptor)
    if (status.isDirectory()) throw new CannotJudge(`${show(file)} is a folder.`)
    return new LineReader({ file, descriptor, size: status.size, io })
  })
}

/** Reads a file once, in chunks, and hashes it on the way. */
class LineReader {
  #source
  #filled = 0
  #hash = crypto.createHash('sha256')
  #shownAtMs = 0
  bytes = 0
  sha256 = null
  /** The line, without its line break, is in the buffer from `start` to `end`. */
  buffer = Buffer.allocUnsafe(CHUNK_BYTES)
  start = 0
  end = -1
  lineNumber = 0

  constructor(source) {
    this.#source = source
  }

  /** Moves to the next line. Returns false at the end of the file. */
  next() {
    this.start = this.end + 1
    let from = this.start
    for (;;) {
      this.end = this.buffer.indexOf(0x0a, from)
      if (this.end >= 0 && this.end < this.#filled) break
      from = this.#filled - this.start
      if (this.#fill()) continue
      if (this.#filled === 0) return false
      throw new Tampered(
        `Line ${number(this.lineNumber + 1)} has no line break. The end of the file is missing: it was cut, or the download ended early.`,
      )
    }
    this.lineNumber += 1
    if (this.lineNumber === 1 && this.buffer[0] === 0x1f && this.buffer[1] === 0x8b)
      throw new CannotJudge(
        `${show(this.#source.file)} is compressed. Decompress it first, with gunzip.`,
      )
    return true
  }

  decode() {
    const line = this.buffer.subarray(this.start, this.end)
    const text = line.toString()
    // Bytes that are not UTF-8 become U+FFFD, which a valid line can contain too.
    if (text.includes('\ufffd') && !Buffer.from(text).equals(line))
      throw new Tampered(
        `Line ${number(this.lineNumber)} is not UTF-8. The file was changed or is damaged.`,
      )
    return text
  }

  /** Moves the rest of the buffer to its start and appends a chunk. Returns false at the end of the file. */
  #fill() {
    this.buffer.copyWithin(0, this.start, this.#filled)
    this.#filled -= this.start
    this.start = 0
    if (this.#filled > LINE_BYTES_MAX)
      throw new CannotJudge(
        `Line ${number(this.lineNumber + 1)} is longer than ${LINE_BYTES_MAX} bytes.`,
      )
    if (this.#filled + CHUNK_BYTES / 2 > this.buffer.length) {
      this.buffer = Buffer.concat([this.buffer], this.buffer.length * 2)
    }
    return this.#read() > 0
  }

  #read() {
    const { file, descriptor } = this.#source
    const space = this.buffer.length - this.#filled
    const length = accessFile(file, () =>
      readSync(descriptor, this.buffer, this.#filled, space, null),
    )
    this.#hash.update(this.buffer.subarray(this.#filled, this.#filled + length))
    this.#filled += length
    this.bytes += length
    if (length === 0) this.sha256 ??= this.#hash.digest('hex')
    else this.#showProgress()
    return length
  }

  /** Without lines. */
  hashAll() {
    while (this.#read() > 0) this.#filled = 0
    return this.sha256
  }

  #showProgress() {
    const { size, io } = this.#source
    if (!io.isTerminal || size < PROGRESS_BYTES_MIN) return
    const nowMs = performance.now()
    if (nowMs - this.#shownAtMs < PROGRESS_MS) return
    this.#shownAtMs = nowMs
    const share = Math.min(1, this.bytes / size)
    const bar = '#'.repeat(Math.round(share * 40)).padEnd(40, '.')
    io.err(`\r[${bar}] ${String(Math.floor(share * 100)).padStart(3)}%`)
  }

  close() {
    if (this.#shownAtMs > 0) this.#source.io.err(`\r${' '.repeat(48)}\r`)
    closeSync(this.#source.descriptor)
  }
}

// Values

/** Counts can be numbers or decimal strings. Returns null for everything else. */
function toCount(value) {
  if (typeof value === 'string' && /^(0|[1-9]\d{0,15})$/.test(value)) return Number(value)
  return isCount(value) ? value : null
}

function parseHashes(hashes, what) {
  if (!Array.isArray(hashes)) throw new CannotJudge(`${what} has no list of hashes.`)
  return hashes.map((text) => {
    const hash = typeof text === 'string' ? decodeBase64(text) : null
    if (hash?.length !== 32)
      throw new Tampered(
        `${what}: ${show(text)} is not a SHA-256 hash in base64. The proof was changed.`,
      )
    return hash
  })
}

/** Only the one standard encoding of the bytes, with padding. */
function decodeBase64(text) {
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? bytes : null
}

/** Text of a file may contain control characters, which a terminal would follow. */
function show(value) {
  const text = JSON.stringify(value) ?? 'undefined'
  return printable(text.length > 1_000 ? `${text.slice(0, 1_000)}…` : text)
}

const escapeUnit = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
const printable = (text) => text.replace(/[^\x20-\x7e…]/g, escapeUnit)
const number = (value) => value.toLocaleString('en-US')
const count = (value, noun) => `${number(value)} ${noun}${value === 1 ? '' : 's'}`
const events = (value) => count(value, 'event')
const isOrAre = (value) => (value === 1 ? 'is' : 'are')

function isRunDirectly() {
  try {
    return realpathSync(process.argv[1] ?? '') === fileURLToPath(import.meta.url)
  } catch {
    return false
  }
}

if (isRunDirectly()) process.exitCode = run(process.argv.slice(2))
