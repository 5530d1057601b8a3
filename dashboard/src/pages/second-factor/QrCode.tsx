import { useMemo } from 'react'
import { drawQrCode } from './qr-code.ts'

/** Light modules around the code, which scanners need. */
const BORDER = 4

/** Nothing if the text is too long. Always dark on light: not all apps scan inverted codes. */
export function QrCode({ text, label }: { text: string; label: string }) {
  const code = useMemo(() => drawQrCode(text), [text])
  if (!code) return null
  const { size, dark } = code
  const width = size + 2 * BORDER
  const path = [...dark.entries()]
    .filter(([, value]) => value === 1)
    .map(([at]) => `M${(at % size) + BORDER} ${Math.floor(at / size) + BORDER}h1v1h-1z`)
    .join('')
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${width} ${width}`}
      width={208}
      height={208}
      shapeRendering="crispEdges"
    >
      <rect width={width} height={width} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  )
}
