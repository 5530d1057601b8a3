import { Alert, Modal, Stack, Text } from '@mantine/core'
import { CodeBox } from '../../parts/CodeBox.tsx'
import { limitText } from './export-text.ts'
import { type Export, isOpen, useCapabilities } from './exports.ts'

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
export function ApiDownload({ isOpen: isShown, onClose, ...about }: ApiDownloadProps) {
  return (
    <Modal opened={isShown} onClose={onClose} title="Download by the API" size="lg" centered>
      {isShown && <Explanation {...about} />}
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
        <Alert color="yellow" variant="light" role="alert" title={`It is larger than ${most}`}>
          The dashboard sends {most} at most, because a browser that runs out of room loses the
          whole file. The API sends any size.
        </Alert>
      )}
      {isRestoring && (
        <Alert
          color="yellow"
          variant="light"
          role="alert"
          title="Archived data is being brought back"
        >
          That takes minutes to hours. Until then a download answers 503; open it again later, the
          export stays as it is.
        </Alert>
      )}
      {!isOpen(job) && (
        <Text size="sm">
          This export has ended: rerun it first, and take the command of the new one.
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
      <CodeBox text={command} label="the command" />
      <Text size="sm" className="soft">
        ANNALS_KEY is a company key. Curl’s exit code says whether the file is whole; afterwards its
        SHA-256 stands here, to compare with sha256sum.
      </Text>
    </Stack>
  )
}
