import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import type { EventInput } from '../../../../../sdk/src/resource/types.ts'
import { OperatorError } from '../../../errors.ts'
import { parseStrictJson } from '../../../platform/json/strict-json.ts'

/** An array, or one event over several lines. Longer files have one event per line. */
const DOCUMENT_CHARACTERS_MAX = 64 * 1_024 * 1_024

type InputDocument = { value: unknown; line: number }
export type NumberedEvent = { event: EventInput; line: number }

/** Reads events from a file, or from standard input if it is `-`: one per line, one alone, or an array. */
export async function* readInput(
  path: string,
  signal: AbortSignal,
): AsyncGenerator<NumberedEvent, void, undefined> {
  if (path !== '-' && (await stat(path)).isDirectory()) {
    throw new OperatorError(`${path} is a folder. Pass a file with events.`)
  }
  const input = Readable.from(decode(path === '-' ? process.stdin : createReadStream(path)))
  for await (const { value, line } of readDocuments(input, signal)) {
    const items: unknown[] = Array.isArray(value) ? value : [value]
    for (const item of items) {
      if (!isEvent(item)) throw new OperatorError(`Line ${line} is not an event: a JSON object.`)
      yield { event: item, line }
    }
  }
}

/** Without a byte order mark. */
async function* decode(input: AsyncIterable<Buffer>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const read = (chunk?: Buffer): string => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined })
    } catch (cause) {
      throw new OperatorError('The input is not UTF-8.', { cause })
    }
  }
  for await (const chunk of input) yield read(chunk)
  yield read()
}

async function* readDocuments(
  input: Readable,
  signal: AbortSignal,
): AsyncGenerator<InputDocument, void, undefined> {
  let line = 0
  /** The lines of a document that is not complete yet, which is the only one of the file. */
  let open: string[] = []
  let characters = 0
  for await (const text of createInterface({ input, crlfDelay: Infinity, signal })) {
    line += 1
    if (text.trim() === '') continue
    const value = open.length === 0 ? parse(text, line) : undefined
    if (value !== undefined) {
      yield { value, line }
      continue
    }
    // A file of several lines of JSON has a damaged line instead.
    if (line > 1 && open.length === 0) throw new OperatorError(`Line ${line} is not valid JSON.`)
    characters += text.length
    if (characters > DOCUMENT_CHARACTERS_MAX) {
      throw new OperatorError('The JSON is too large. Write one event per line instead.')
    }
    open.push(text)
  }
  // An abort ends the loop like the end of the input.
  signal.throwIfAborted()
  if (open.length === 0) return
  const value = parse(open.join('\n'), 1)
  if (value === undefined)
    throw new OperatorError(
      'The input is neither one event per line nor one JSON document: line 1 is not complete.',
    )
  yield { value, line: 1 }
}

/** Undefined if it isn't JSON, which has no such value. Refuses what `JSON.parse` would change, as the service does. */
function parse(text: string, line: number): unknown {
  const { value, fault } = parseStrictJson(Buffer.from(text))
  if (fault === null) return value
  if (fault.kind === 'syntax') return undefined
  throw new OperatorError(`Line ${line}: ${fault.message}`)
}

/** The service checks the fields, and says what is wrong with each event. */
function isEvent(value: unknown): value is EventInput {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
