import { Code } from '@mantine/core'
import classes from './BodyText.module.css'

/** What was sent or answered, as text that wraps; a long one scrolls, by keyboard too. */
export function BodyText({ label, text }: { label: string; text: string }) {
  return (
    <Code block className={classes.body} tabIndex={0} role="region" aria-label={label}>
      {text}
    </Code>
  )
}
