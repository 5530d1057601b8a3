import { Button, Group, Stack, Switch, Text, Textarea } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { ApiError, client, unwrap } from '../../../api/client.ts'
import { queryClient } from '../../../api/query-client.ts'
import { BusyButton } from '../../../parts/BusyButton.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { Gate } from '../../../parts/Gate.tsx'
import { StatusText } from '../../../parts/text/StatusText.tsx'
import { COMPANY_KEY, type Company } from '../../company/company.ts'
import { isInEntries } from './address-range.ts'
import { LockoutWarning } from './LockoutWarning.tsx'

type Allowlist = NonNullable<Company['allowlist']>

type Uses = Pick<Allowlist, 'forAllCalls' | 'forDashboard'>

type EditorProps = {
  allowlist: Allowlist
  address: string
  isSaved: boolean
  onSaved: (isSaved: boolean) => void
}

export function AllowlistEditor({ allowlist, address, isSaved, onSaved }: EditorProps) {
  const [text, setText] = useState(allowlist.entries.join('\n'))
  const { forAllCalls, forDashboard } = allowlist
  const [uses, setUses] = useState({ forAllCalls, forDashboard })
  const entries = readLines(text)
  const save = useSaveAllowlist({ entries, ...uses }, () => onSaved(true))
  const isChanged =
    entries.join() !== allowlist.entries.join() ||
    uses.forAllCalls !== forAllCalls ||
    uses.forDashboard !== forDashboard
  const isConflict = save.error instanceof ApiError && save.error.code === 'conflict'
  // For the dashboard, a list without the member's address can't be confirmed.
  const isLockedOut = isConflict && !uses.forDashboard
  const change = (act: () => void) => {
    save.reset()
    onSaved(false)
    act()
  }
  return (
    <Stack maw={640} gap="sm">
      <Textarea
        label="IP addresses and CIDR ranges, one per line"
        description={`${entries.length} of ${allowlist.entriesMax} entries. For example: 203.0.113.7, 203.0.113.0/24, 2001:db8::/32`}
        autosize
        minRows={5}
        maxRows={16}
        spellCheck={false}
        classNames={{ input: 'mono' }}
        value={text}
        onChange={(event) => change(() => setText(event.currentTarget.value))}
        error={entryErrors(save.error, entries)}
      />
      <OwnAddress
        address={address}
        isListed={isInEntries(address, entries)}
        onAdd={() => change(() => setText([...entries, address].join('\n')))}
      />
      <UseSwitches uses={uses} onChange={(next) => change(() => setUses(next))} />
      {isLockedOut ? (
        <LockoutWarning
          address={address}
          forAllCalls={uses.forAllCalls}
          isBusy={save.isPending}
          onConfirm={() => save.mutate(true)}
          onBack={() => save.reset()}
        />
      ) : (
        entryErrors(save.error, entries) === null && <ErrorBox error={save.error} />
      )}
      <Group gap="sm">
        <Gate permission="company.manage" action="change the allowlist">
          <BusyButton
            size="xs"
            onClick={() => save.mutate(false)}
            isBusy={save.isPending}
            disabled={!isChanged || isLockedOut}
          >
            Save allowlist
          </BusyButton>
        </Gate>
        <div role="status">
          {isSaved && !isChanged && (
            <StatusText tone="good">Saved. Takes effect within two seconds.</StatusText>
          )}
        </div>
      </Group>
    </Stack>
  )
}

function useSaveAllowlist(body: Uses & Pick<Allowlist, 'entries'>, onSaved: () => void) {
  return useMutation({
    mutationFn: (isConfirmed: boolean) =>
      unwrap(
        client.PUT('/dashboard/company/allowlist', {
          body: { ...body, ...(isConfirmed && { confirmAddressLeftOut: true }) },
        }),
      ),
    onSuccess: async (company) => {
      queryClient.setQueryData(COMPANY_KEY, company)
      onSaved()
      await queryClient.invalidateQueries({ queryKey: ['keys'] })
    },
  })
}

/** What the list applies to, besides webhook changes. */
function UseSwitches({ uses, onChange }: { uses: Uses; onChange: (uses: Uses) => void }) {
  return (
    <>
      <Switch
        label="Apply to all calls"
        description="If on, every call with a key must come from a listed address. If off, only calls that create or change a webhook must."
        checked={uses.forAllCalls}
        onChange={(event) => onChange({ ...uses, forAllCalls: event.currentTarget.checked })}
      />
      <Switch
        label="Apply to the dashboard"
        description="If on, members can sign in and use the dashboard only from a listed address. The list must contain yours."
        checked={uses.forDashboard}
        onChange={(event) => onChange({ ...uses, forDashboard: event.currentTarget.checked })}
      />
    </>
  )
}

function OwnAddress({
  address,
  isListed,
  onAdd,
}: {
  address: string
  isListed: boolean
  onAdd: () => void
}) {
  return (
    <Group gap="xs">
      <Text size="sm">
        Your current address: <span className="mono">{address}</span>
      </Text>
      {isListed ? (
        <Text size="sm" className="soft">
          is on the list
        </Text>
      ) : (
        <Button size="compact-xs" variant="default" onClick={onAdd}>
          Add my address
        </Button>
      )}
    </Group>
  )
}

function readLines(text: string): string[] {
  return text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

/** The service names an invalid entry by its index. The message shows its text instead. */
function entryErrors(error: Error | null, entries: readonly string[]): string | null {
  if (!(error instanceof ApiError)) return null
  const messages = error.details.flatMap(({ path, message }) => {
    const place = /^\/entries\/(\d+)$/.exec(path)?.[1]
    return place === undefined ? [] : [`${entries[Number(place)] ?? ''} ${message}`]
  })
  return messages.length === 0 ? null : `${messages.join('. ')}.`
}
