import { Code, Stack, Text } from '@mantine/core'
import { CodeBlock } from '../../../parts/text/CodeBlock.tsx'

const RECEIVER = `node -e "require('http').createServer((q,s)=>{q.on('data',d=>console.log(q.headers['x-service-signature'],String(d)));q.on('end',()=>s.end('ok'))}).listen(9099,'127.0.0.1')"`

const START = 'ANNALS_WEBHOOK_DESTINATIONS=any npm start'

/** A command that starts a receiver, for trying out webhooks without a server. */
export function LocalReceiver() {
  return (
    <Stack gap="xs" w="100%" maw={620} mt="md">
      <Text size="sm">
        To try it out, run a local receiver and use its URL, http://127.0.0.1:9099/. Annals sends
        only to public HTTPS URLs unless you start it like this: <Code>{START}</Code>
      </Text>
      <CodeBlock text={RECEIVER} label="receiver command" />
    </Stack>
  )
}
