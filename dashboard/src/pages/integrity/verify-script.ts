/** A script for auditors that verifies each line of an export, short enough to paste. */
export const VERIFY_SCRIPT = `// check.mjs: node check.mjs export.jsonl
import { createHash, createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'

const canonical = (v) => Array.isArray(v) ? '[' + v.map(canonical).join(',') + ']'
  : v && typeof v === 'object' ? '{' + Object.keys(v).sort().map((k) => JSON.stringify(k) + ':' + canonical(v[k])).join(',') + '}'
  : JSON.stringify(v)
// JSON.parse of Node 24 can mistake a key with escapes for another, but reads single values correctly.
const parse = (line) => {
  JSON.parse(line)
  const tokens = line.match(/"(?:[^"\\\\]|\\\\.)*"|[{}[\\]]|[-+.\\w]+/g)
  let at = 0
  const until = (end) => { const all = []; while (tokens[at] !== end) all.push(read()); at++; return all }
  const read = () => {
    const token = tokens[at++]
    if (token === '[') return until(']')
    if (token !== '{') return JSON.parse(token)
    const all = until('}')
    return Object.fromEntries(all.flatMap((key, i) => i % 2 === 0 ? [[key, all[i + 1]]] : []))
  }
  return read()
}
const fail = (why) => { console.error(why); process.exit(1) }
const lasts = new Map()
let count = 0, gaps = 0, last
for (const line of readFileSync(process.argv[2], 'utf8').split('\\n')) {
  if (line === '') continue
  const e = parse(line)
  for (const name of e.stub ? [] : ['actor', 'resource', 'metadata']) {
    if (e[name] === null && !e.salts[name]) continue
    const text = 'annals/v1/' + name + '\\0' + canonical(e[name])
    const sealed = createHmac('sha256', Buffer.from(e.salts[name] ?? '', 'hex')).update(text).digest('hex')
    if (sealed !== e.sealed[name]) fail('event ' + e.seq + ': ' + name + ' was changed')
  }
  const { id, seq, companyId, workspaceId, projectId, timestamp, receivedAt, category, action, traceId, sealed, prevHash } = e
  const core = canonical({ v: 1, id, seq, companyId, workspaceId, projectId, timestamp, receivedAt, category, action, traceId, sealed, prevHash })
  const hash = createHash('sha256').update('\\0' + core).digest('hex')
  if (hash !== e.hash) fail('event ' + seq + ' was changed')
  const before = lasts.get(workspaceId) ?? { seq: 0 }
  if (before.seq !== seq - 1) gaps++
  else if (before.hash && before.hash !== prevHash) fail('event ' + seq + ' does not follow the previous event')
  lasts.set(workspaceId, e)
  count++
  last = 'last: event ' + seq + ', ' + hash
}
console.log(count === 0 ? 'no events' : gaps === 0
  ? count + ' events verified, none missing; ' + last
  : count + ' events verified, ' + gaps + (gaps === 1 ? ' gap' : ' gaps') + ' in the sequence (expected only in a filtered export); ' + last)`
