import { TextInput } from '@mantine/core'
import { fromInputTime } from './input-time.ts'

const WRONG_TEXT = 'Enter a time such as 2026-12-31 23:59.'

/** A time to the second, with 24 hours in every browser, as in the tables. */
export function TimeInput({
  label,
  value,
  onChange,
  error,
  isRequired = false,
}: {
  label: string
  value: string
  onChange: (value: string) => void
  error?: string | false
  isRequired?: boolean
}) {
  const isWrong = value !== '' && fromInputTime(value) === null
  return (
    <TextInput
      // The form can't be submitted with it.
      ref={(input) => input?.setCustomValidity(isWrong ? WRONG_TEXT : '')}
      label={label}
      className="numeric"
      placeholder="2026-12-31 23:59:59"
      maxLength={40}
      autoComplete="off"
      spellCheck={false}
      required={isRequired}
      withAsterisk={false}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      error={isWrong ? WRONG_TEXT : error}
    />
  )
}
