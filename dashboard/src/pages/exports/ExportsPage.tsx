import { Alert, Button, Tabs } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { Icon } from '../../parts/Icon.tsx'
import { PageHeader } from '../../parts/PageHeader.tsx'
import { ExportGate } from './ExportGate.tsx'
import { ExportList } from './list/ExportList.tsx'
import { type ExportBody, useCapabilities } from './exports.ts'
import { NewExport } from './form/NewExport.tsx'
import { TemplateList } from './template/TemplateList.tsx'
import { usePollFast } from './list/use-poll-fast.ts'
import { useShowExport } from './list/use-show-export.ts'

const route = getRouteApi('/shell/app/exports')

/** The exports and the export templates. */
export function ExportsPage() {
  const { tab } = route.useSearch()
  const navigate = route.useNavigate()
  const [form, setForm] = useState<{ start: ExportBody | null } | null>(null)
  const show = useShowExport()
  const [pollFast, startPollingFast] = usePollFast()
  const { data: capabilities } = useCapabilities()
  const openForm = (start: ExportBody | null = null) => setForm({ start })
  return (
    <>
      <PageHeader
        title="Exports"
        description="Export events to a file. The rows are fixed when you create the export, and its SHA-256 is recorded so that anyone can check the file later."
      >
        <ExportGate action="create exports">
          <Button size="xs" leftSection={<Icon name="plus" size={14} />} onClick={() => openForm()}>
            Create export
          </Button>
        </ExportGate>
      </PageHeader>
      {capabilities?.reason && (
        <Alert color="yellow" variant="light" mb="md" title={capabilities.reason}>
          {capabilities.rowLimit === null &&
            'Ask your operator to change the plan. Meanwhile, the explorer shows the same events, and existing exports stay listed here.'}
        </Alert>
      )}
      <Tabs
        value={tab ?? 'exports'}
        onChange={(value) =>
          void navigate({ search: value === 'templates' ? { tab: 'templates' } : {} })
        }
        keepMounted={false}
      >
        <Tabs.List mb="sm">
          <Tabs.Tab value="exports">Exports</Tabs.Tab>
          <Tabs.Tab value="templates">Templates</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="exports">
          <ExportList onNew={openForm} pollFast={pollFast} onDownload={startPollingFast} />
        </Tabs.Panel>
        <Tabs.Panel value="templates">
          <TemplateList onNew={() => openForm()} />
        </Tabs.Panel>
      </Tabs>
      <NewExport
        isOpen={form !== null}
        start={form?.start ?? null}
        onClose={() => setForm(null)}
        onDownload={startPollingFast}
        onCreated={show}
      />
    </>
  )
}
