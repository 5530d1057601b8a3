import { Kbd, Modal } from '@mantine/core'
import classes from './ShortcutsDialog.module.css'

const SHORTCUTS: readonly (readonly [keys: readonly string[], does: string])[] = [
  [['/'], 'Search'],
  [['j', 'k'], 'Next and previous event'],
  [['Enter'], 'Open the event'],
  [['Esc'], 'Close it'],
  [['[', ']'], 'Earlier and later time'],
  [['e'], 'Export exactly this'],
  [['s'], 'Save view'],
  [['←', '→'], 'In the bars: over them; with Shift choose several'],
  [['Enter'], 'In the bars: zoom into what is chosen'],
  [['Backspace'], 'In the empty search: remove the last filter'],
  [['Shift', 'Enter'], 'In the filter menu: exclude the value'],
  [['?'], 'Show this'],
]

export function ShortcutsDialog({ onClose }: { onClose: () => void }) {
  return (
    <Modal opened onClose={onClose} title="Keyboard" centered>
      <dl className={classes.list}>
        {SHORTCUTS.map(([keys, does]) => (
          <div className={classes.line} key={does}>
            <dt>
              {keys.map((key) => (
                <Kbd key={key}>{key}</Kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </Modal>
  )
}
