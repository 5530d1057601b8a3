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
import { client, unwrap } from '../../../api/client.ts'
import { BusyButton } from '../../../parts/BusyButton.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { Gate } from '../../../parts/Gate.tsx'

const NONE_TYPED = { id: '', timestamp: '', secret: '' }

/** Checks the signature of a pasted request, and explains what is wrong. */
export function SignatureCheck({ webhookId }: { webhookId: string }) {
  const [body, setBody] = useState('')
  const [signature, setSignature] = useState('')
  const [optional, setOptional] = useState(NONE_TYPED)
  const check = useMutation({
    mutationFn: () =>
      unwrap(
        client.POST('/dashboard/webhooks/{webhookId}/check-signature', {
          params: { path: { webhookId } },
          body: {
            body,
            signature,
            ...(optional.id !== '' && { id: optional.id }),
            ...(optional.timestamp !== '' && { timestamp: optional.timestamp }),
            ...(optional.secret !== '' && { secret: optional.secret }),
          },
        }),
      ),
  })
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
        <OptionalFields typed={optional} onChange={setOptional} />
        <Group>
          <Gate permission="webhooks.manage" action="check signatures">
            <BusyButton type="submit" isBusy={check.isPending}>
              Check signature
            </BusyButton>
          </Gate>
        </Group>
        <ErrorBox error={check.error} />
        {check.data && <Finding {...check.data} />}
      </Stack>
    </form>
  )
}

function OptionalFields({
  typed,
  onChange,
}: {
  typed: typeof NONE_TYPED
  onChange: (typed: typeof NONE_TYPED) => void
}) {
  return (
    <SimpleGrid cols={{ base: 1, sm: 3 }}>
      <TextInput
        label="webhook-id"
        description="Required for webhook-signature"
        value={typed.id}
        onChange={(event) => onChange({ ...typed, id: event.currentTarget.value })}
      />
      <TextInput
        label="webhook-timestamp"
        description="Required for webhook-signature"
        value={typed.timestamp}
        onChange={(event) => onChange({ ...typed, timestamp: event.currentTarget.value })}
      />
      <PasswordInput
        label="Your secret"
        description="Optional, to compare with the stored secret"
        autoComplete="off"
        value={typed.secret}
        onChange={(event) => onChange({ ...typed, secret: event.currentTarget.value })}
      />
    </SimpleGrid>
  )
}

function Finding({ finding, explanation }: { finding: string; explanation: string }) {
  const isValid = finding === 'valid'
  return (
    <Alert
      role="status"
      color={isValid ? 'green' : 'red'}
      variant="light"
      title={isValid ? 'Signature matches' : 'Signature does not match'}
    >
      {explanation}
    </Alert>
  )
}
