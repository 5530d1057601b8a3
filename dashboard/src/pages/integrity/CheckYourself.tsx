import { List } from '@mantine/core'
import { AnchorLink } from '../../parts/AnchorLink.tsx'
import { CodeBox } from '../../parts/CodeBox.tsx'

/** By hand, for the first line of an export: what an auditor's own program does for each. */
const SCRIPT = `// check.mjs: node check.mjs export.jsonl
import { createHash, createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'

const canonical = (v) => Array.isArray(v) ? '[' + v.map(canonical).join(',') + ']'
  : v && typeof v === 'object' ? '{' + Object.keys(v).sort().map((k) => JSON.stringify(k) + ':' + canonical(v[k])).join(',') + '}'
  : JSON.stringify(v)
let previous = null
for (const line of readFileSync(process.argv[2], 'utf8').trim().split('\\n')) {
  const e = JSON.parse(line)
  for (const name of Object.keys(e.salts)) {
    const text = 'annals/v1/' + name + '\\0' + canonical(e[name])
    const sealed = createHmac('sha256', Buffer.from(e.salts[name], 'hex')).update(text).digest('hex')
    if (sealed !== e.sealed[name]) throw new Error('event ' + e.seq + ': ' + name + ' was changed')
  }
  const { id, seq, companyId, workspaceId, projectId, timestamp, receivedAt, category, action, traceId, sealed, prevHash } = e
  const core = canonical({ v: 1, id, seq, companyId, workspaceId, projectId, timestamp, receivedAt, category, action, traceId, sealed, prevHash })
  const hash = createHash('sha256').update('\\0' + core).digest('hex')
  if (hash !== e.hash) throw new Error('event ' + seq + ' was changed')
  if (previous && previous.workspaceId === workspaceId && previous.seq === seq - 1 && previous.hash !== prevHash) throw new Error('event ' + seq + ' does not follow')
  previous = e
}
console.log('every event holds, the last is ' + previous?.hash)`

export function CheckYourself() {
  return (
    <>
      <List size="sm" type="ordered" mb="sm" spacing={4}>
        <List.Item>
          <AnchorLink to="/app/exports" underline="always">
            Export
          </AnchorLink>{' '}
          all events of a workspace as JSONL.
        </List.Item>
        <List.Item>Run this on your own machine; it needs Node and nothing of ours.</List.Item>
        <List.Item>Compare the last hash with the head above.</List.Item>
      </List>
      <CodeBox text={SCRIPT} label="the script" />
    </>
  )
}
