import { NameDialog } from '../../../parts/dialog/NameDialog.tsx'
import type { ExportBody } from '../exports.ts'
import { createTemplate } from './templates.ts'

/** Saves the form as a template. Must be outside of that form: submitting one would submit both. */
export function SaveTemplate({
  name: suggested,
  body,
  isOpen,
  onClose,
  onSaved,
}: {
  /** What the member has entered as the name of the export. */
  name: string
  body: ExportBody
  isOpen: boolean
  onClose: () => void
  onSaved: (name: string) => void
}) {
  return (
    <NameDialog
      isOpen={isOpen}
      onClose={onClose}
      title="Save as template"
      label="Name"
      suggestion={suggested}
      description="A relative range, such as the previous month, is resolved at each run."
      action="Save template"
      onSave={async (name) => {
        await createTemplate({ name, body })
        onSaved(name)
      }}
    />
  )
}
