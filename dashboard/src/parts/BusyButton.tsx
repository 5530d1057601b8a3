import { Button, type ButtonProps } from '@mantine/core'
import type { ComponentProps } from 'react'
import { ignorePress } from './ignore-press.ts'

type BusyProps = ButtonProps &
  Omit<ComponentProps<'button'>, keyof ButtonProps> & {
    /** What it began still runs: it shows so, and begins nothing else. */
    isBusy: boolean
  }

/**
 * A button whose action takes a moment. The browser's own "disabled" would throw whoever pressed it by
 * keyboard back to the top of the page: so it keeps the focus while it is busy, and ignores being pressed.
 */
export function BusyButton({ isBusy, disabled = false, onClick, ...others }: BusyProps) {
  const isHeld = isBusy || disabled
  return (
    <Button
      component={FocusableButton}
      type="button"
      aria-disabled={isHeld || undefined}
      aria-busy={isBusy || undefined}
      {...others}
      disabled={disabled}
      loading={isBusy}
      onClick={isHeld ? ignorePress : onClick}
    />
  )
}

/** Leaves out the attribute that Mantine sets on whatever loads. */
function FocusableButton(props: ComponentProps<'button'>) {
  return <button {...props} disabled={undefined} />
}
