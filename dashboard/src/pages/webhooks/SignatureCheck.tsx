import {
  Alert,
  Group,
  PasswordInput,
  SimpleGrid,
  Stack,
  Text,
  Textarea,
  TextInput,
} from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { ErrorBox } from '../../parts/ErrorBox.tsx'
import { Gate } from '../../parts/Gate.tsx'

/** Checks the signature of a pasted request, and explains what is wrong. */
export function SignatureCheck({ webhookId }: { webhookId: string }) {
  const [body, setBody] = useState('')
  const [signature, setSignature] = useState('')
  const [id, setId] = useState('')
  const [timestamp, setTimestamp] = useState('')
  const [secret, setSecret] = useState('')
  const check = useMutation({
    mutationFn: () =>
      unwrap(
        client.POST('/dashboard/webhooks/{webhookId}/check-signature', {
          params: { path: { webhookId } },
          body: {
            body,
            signature,
            ...(id !== '' && { id }),
            ...(timestamp !== '' && { timestamp }),
            ...(secret !== '' && { secret }),
          },
        }),
      ),
  })
  const isValid = check.data?.finding === 'valid'
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        check.mutate()
      }}
    >
      <Stack maw={720}>
        <Text size="sm" className="soft">
          Does your receiver reject the signature? Paste the body exactly as received, and the
          signature: ours, or the one your code computed. Nothing is stored.
        </Text>
        <Textarea
          label="Body"
          autosize
          minRows={4}
          maxRows={12}
          required
          value={body}
          onChange={(event) => setBody(event.currentTarget.value)}
          styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
        />
        <TextInput
          label="Signature"
          placeholder="v1=…"
          required
          value={signature}
          onChange={(event) => setSignature(event.currentTarget.value)}
        />
        <SimpleGrid cols={{ base: 1, sm: 3 }}>
          <TextInput
            label="webhook-id"
            description="Required for webhook-signature"
            value={id}
            onChange={(event) => setId(event.currentTarget.value)}
          />
          <TextInput
            label="webhook-timestamp"
            description="Required for webhook-signature"
            value={timestamp}
            onChange={(event) => setTimestamp(event.currentTarget.value)}
          />
          <PasswordInput
            label="Your secret"
            description="Optional, to compare with the stored secret"
            autoComplete="off"
            value={secret}
            onChange={(event) => setSecret(event.currentTarget.value)}
          />
        </SimpleGrid>
        <Group>
          <Gate permission="webhooks.manage" action="check signatures">
            <BusyButton type="submit" isBusy={check.isPending}>
              Check signature
            </BusyButton>
          </Gate>
        </Group>
        <ErrorBox error={check.error} />
        {check.data && (
          <Alert
            role="status"
            color={isValid ? 'green' : 'red'}
            variant="light"
            title={isValid ? 'Signature matches' : 'Signature does not match'}
          >
            {check.data.explanation}
          </Alert>
        )}
      </Stack>
    </form>
  )
}
