import { Kbd, Modal } from '@mantine/core'
import { commandKey } from '../../parts/command-key.ts'
import classes from './ShortcutsDialog.module.css'

const SHORTCUTS: readonly (readonly [keys: readonly string[], description: string])[] = [
  [[commandKey(), 'K'], 'Go to a page, workspace, view, event or recent search'],
  [['/'], 'Search'],
  [['j', 'k'], 'Next or previous event'],
  [['Enter'], 'Open event'],
  [['Esc'], 'Close event'],
  [['[', ']'], 'Earlier or later period'],
  [['e'], 'Export events'],
  [['s'], 'Save view'],
  [['←', '→'], 'In the histogram: move between bars; with Shift, select several'],
  [['Enter'], 'In the histogram: zoom in to the selection'],
  [['Backspace'], 'In an empty search box: remove the last filter'],
  [['Shift', 'Enter'], 'In the filter menu: exclude the value'],
  [['?'], 'Show keyboard shortcuts'],
]

export function ShortcutsDialog({ onClose }: { onClose: () => void }) {
  return (
    <Modal opened onClose={onClose} title="Keyboard shortcuts" centered>
      <dl className={classes.list}>
        {SHORTCUTS.map(([keys, description]) => (
          <div className={classes.line} key={description}>
            <dt>
              {keys.map((key) => (
                <Kbd key={key}>{key}</Kbd>
              ))}
            </dt>
            <dd>{description}</dd>
          </div>
        ))}
      </dl>
    </Modal>
  )
}
