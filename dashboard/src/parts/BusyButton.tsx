import { Button, type ButtonProps } from '@mantine/core'
import type { ComponentProps } from 'react'
import { ignoreClick } from './ignore-click.ts'

type BusyProps = ButtonProps &
  Omit<ComponentProps<'button'>, keyof ButtonProps> & {
    /** The action is still running: the button shows this and ignores clicks. */
    isBusy: boolean
  }

/**
 * A button for an action that takes a moment. The `disabled` attribute would move keyboard focus back to
 * the top of the page, so the button keeps the focus while it is busy and ignores clicks.
 */
export function BusyButton({ isBusy, disabled = false, onClick, ...others }: BusyProps) {
  const isInactive = isBusy || disabled
  return (
    <Button
      component={FocusableButton}
      type="button"
      aria-disabled={isInactive || undefined}
      aria-busy={isBusy || undefined}
      {...others}
      disabled={disabled}
      loading={isBusy}
      onClick={isInactive ? ignoreClick : onClick}
    />
  )
}

/** Drops the `disabled` attribute that Mantine sets while loading. */
function FocusableButton(props: ComponentProps<'button'>) {
  return <button {...props} disabled={undefined} />
}
