import { TextInput } from '@mantine/core'

const NAME_LENGTH_MAX = 200

/** The optional name of a new export. */
export function ExportName({
  value,
  onChange,
}: {
  value: string
  onChange: (value: string) => void
}) {
  return (
    <TextInput
      label="Name"
      placeholder="Optional"
      maxLength={NAME_LENGTH_MAX}
      autoComplete="off"
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  )
}

/** The part of the request that names the export. Empty if the field is. */
export function nameBody(typed: string): { name?: string } {
  const name = typed.trim()
  return name === '' ? {} : { name }
}
