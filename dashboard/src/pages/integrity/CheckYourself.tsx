import { List } from '@mantine/core'
import { AnchorLink } from '../../parts/AnchorLink.tsx'
import { CodeBox } from '../../parts/CodeBox.tsx'
import { CHECK_SCRIPT } from './check-script.ts'

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
        <List.Item>Run this script on your own machine. It needs only Node.</List.Item>
        <List.Item>
          Compare the last sequence number and hash with the head above, because removing the newest
          events leaves no gap.
        </List.Item>
      </List>
      <CodeBox text={CHECK_SCRIPT} label="script" />
    </>
  )
}
