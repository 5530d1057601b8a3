import { Code } from '@mantine/core'
import classes from './BodyText.module.css'

/** A request or response body that wraps. A long one scrolls, also with the keyboard. */
export function BodyText({ label, text }: { label: string; text: string }) {
  return (
    <Code block className={classes.body} tabIndex={0} role="region" aria-label={label}>
      {text}
    </Code>
  )
}
