import { Stack, Text } from '@mantine/core'
import { CodeBox } from '../../parts/CodeBox.tsx'

const RECEIVER = `node -e "require('http').createServer((q,s)=>{q.on('data',d=>console.log(q.headers['x-service-signature'],String(d)));q.on('end',()=>s.end('ok'))}).listen(9099)"`

/** Something that listens, for whoever has nothing yet. */
export function LocalReceiver() {
  return (
    <Stack gap={4} w="100%" maw={620}>
      <CodeBox text={RECEIVER} label="a local receiver" />
      <Text size="xs" className="soft">
        Its address is http://127.0.0.1:9099/. A service that only sends to public addresses must be
        started with ANNALS_WEBHOOK_DESTINATIONS=any to reach it.
      </Text>
    </Stack>
  )
}
