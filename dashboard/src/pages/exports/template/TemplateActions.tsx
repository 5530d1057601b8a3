import { ActionIcon, Menu } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { ConfirmDialog } from '../../../parts/dialog/ConfirmDialog.tsx'
import { Icon } from '../../../parts/Icon.tsx'
import { MenuAction } from '../../../parts/MenuAction.tsx'
import { EditTemplate } from './EditTemplate.tsx'
import { useExportDeniedReason } from '../ExportGate.tsx'
import { ScheduleTemplate } from './ScheduleTemplate.tsx'
import { deleteTemplate, type Template } from './templates.ts'

/** For members who may change the template: its owner, and the company's owners and admins. */
export function TemplateActions({ template }: { template: Template }) {
  const [dialog, setDialog] = useState<'edit' | 'schedule' | 'delete' | null>(null)
  const close = () => setDialog(null)
  const remove = useMutation({
    mutationFn: () => deleteTemplate(template.id),
    onSuccess: close,
  })
  const { name, mayChange } = template
  const planReason = useExportDeniedReason('schedule exports')
  const reason = mayChange ? null : 'Only its creator, owners and admins can change this template.'
  return (
    <>
      <Menu position="bottom-end" width={220}>
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={`Actions for ${name}`}>
            <Icon name="more" size={20} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <MenuAction reason={reason} onClick={() => setDialog('edit')}>
            Edit template…
          </MenuAction>
          <MenuAction reason={reason ?? planReason} onClick={() => setDialog('schedule')}>
            Schedule exports…
          </MenuAction>
          <MenuAction reason={reason} isDanger onClick={() => setDialog('delete')}>
            Delete template…
          </MenuAction>
        </Menu.Dropdown>
      </Menu>
      <EditTemplate template={template} isOpen={dialog === 'edit'} onClose={close} />
      <ScheduleTemplate template={template} isOpen={dialog === 'schedule'} onClose={close} />
      <ConfirmDialog
        isOpen={dialog === 'delete'}
        onClose={close}
        title="Delete template"
        consequence="The template can no longer be run, and its schedule ends. Exports that were created with it are kept."
        name={name}
        action="Delete template"
        isBusy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate()}
      />
    </>
  )
}
