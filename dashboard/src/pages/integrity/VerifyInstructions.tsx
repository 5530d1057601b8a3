import { List } from '@mantine/core'
import { AnchorLink } from '../../parts/AnchorLink.tsx'
import { CodeBlock } from '../../parts/text/CodeBlock.tsx'
import { VERIFY_SCRIPT } from './verify-script.ts'

export function VerifyInstructions() {
  return (
    <>
      <List size="sm" type="ordered" mb="sm" spacing={4}>
        <List.Item>
          <AnchorLink to="/app/exports" underline="always">
            Export
          </AnchorLink>{' '}
          all events of a workspace as JSONL.
        </List.Item>
        <List.Item>Run this script on your own machine. It needs only Node.</List.Item>
        <List.Item>
          Compare the last sequence number and hash with the head above, because removing the newest
          events leaves no gap.
        </List.Item>
      </List>
      <CodeBlock text={VERIFY_SCRIPT} label="script" />
    </>
  )
}
