import { Button, Group, Stack, Text } from '@mantine/core'
import { StatusText } from '../../../parts/text/StatusText.tsx'
import { TimeText } from '../../../parts/time/TimeText.tsx'
import { AnchorLink } from '../../../parts/AnchorLink.tsx'
import { CommandBox } from '../download/ApiDownload.tsx'
import { DownloadLinks } from '../download/DownloadLink.tsx'
import { limitText } from '../export-text.ts'
import { type Export, type PreflightResult, useCapabilities } from '../exports.ts'

/** Shown after the export is created. The file is generated on download, now or in the next days. */
export function CreatedExport({
  job,
  preflight,
  onClose,
  onDownload,
}: {
  job: Export
  preflight: PreflightResult | undefined
  onClose: () => void
  onDownload: () => void
}) {
  const { data: capabilities } = useCapabilities()
  const isTooLarge = preflight?.fitsDownload === false
  return (
    <Stack>
      <div role="status">
        <StatusText tone="good">The export is ready to download</StatusText>
        <Text size="sm" mt={4}>
          Its rows are fixed. You can download it until{' '}
          <TimeText at={job.expiresAt} style="clock" />, here or from{' '}
          <AnchorLink
            to="/app/exports"
            underline="always"
            search={{ job: job.id }}
            onClick={onClose}
          >
            Exports
          </AnchorLink>
          .
        </Text>
      </div>
      {isTooLarge && (
        <>
          <Text size="sm">
            The export is larger than{' '}
            {capabilities ? limitText(capabilities.downloadBytesMax) : 'the limit'} for browser
            downloads. Download it with the API:
          </Text>
          <CommandBox job={job} />
        </>
      )}
      <Group justify="flex-end" gap="xs">
        <Button variant="default" onClick={onClose}>
          Close
        </Button>
        {!isTooLarge && <DownloadLinks job={job} onStart={onDownload} />}
      </Group>
    </Stack>
  )
}
