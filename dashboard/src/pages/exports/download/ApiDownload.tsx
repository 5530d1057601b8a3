import { Alert, Modal, Stack, Text } from '@mantine/core'
import { CodeBlock } from '../../../parts/text/CodeBlock.tsx'
import { limitText } from '../export-text.ts'
import { type Export, isOpen, useCapabilities } from '../exports.ts'

type ApiDownloadProps = {
  job: Export
  isOpen: boolean
  isTooLarge?: boolean
  isRestoring?: boolean
  onClose: () => void
}

/**
 * Explains how to download by API: for files of any size, for scripts, and for what exceeds the browser.
 */
export function ApiDownload({ isOpen: isShown, onClose, ...details }: ApiDownloadProps) {
  return (
    <Modal opened={isShown} onClose={onClose} title="Download with the API" size="lg" centered>
      {isShown && <Explanation {...details} />}
    </Modal>
  )
}

function Explanation({
  job,
  isTooLarge = false,
  isRestoring = false,
}: Pick<ApiDownloadProps, 'job' | 'isTooLarge' | 'isRestoring'>) {
  const { data: capabilities } = useCapabilities()
  const most = capabilities ? limitText(capabilities.downloadBytesMax) : 'the limit'
  return (
    <Stack>
      {isTooLarge && (
        <Alert color="yellow" variant="light" role="alert" title={`Larger than ${most}`}>
          Downloads in the browser are limited to {most}. The API has no size limit.
        </Alert>
      )}
      {isRestoring && (
        <Alert color="yellow" variant="light" role="alert" title="Archived data is being restored">
          This takes minutes to hours. Until then, downloads get a 503 response. Try again later:
          the export stays available.
        </Alert>
      )}
      {!isOpen(job) && !job.isStored && (
        <Text size="sm">
          This export is closed. Rerun it, then use the command of the new export.
        </Text>
      )}
      <CommandBox job={job} />
    </Stack>
  )
}

export function CommandBox({ job }: { job: Export }) {
  const file = `annals-export-${job.id}.${job.format.toLowerCase()}`
  const command = [
    `curl --fail ${window.location.origin}/v1/exports/${job.id}/download \\`,
    `  -H "authorization: Bearer $ANNALS_KEY" -o ${file}`,
  ].join('\n')
  return (
    <Stack gap={6}>
      <CodeBlock text={command} label="command" />
      <Text size="sm" className="soft">
        Set ANNALS_KEY to a company key. If curl exits with code 0, the file is complete. Its
        SHA-256 then appears in the list of exports, so that you can compare it with sha256sum.
      </Text>
    </Stack>
  )
}
