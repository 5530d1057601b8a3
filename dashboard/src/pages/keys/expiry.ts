const DAY_MS = 86_400_000

/** In days. A key can also never expire, which lowers its health score. */
export const EXPIRY_PRESETS = [
  { value: '7', label: 'In 7 days' },
  { value: '30', label: 'In 30 days' },
  { value: '90', label: 'In 90 days' },
  { value: '180', label: 'In 180 days' },
  { value: '365', label: 'In a year' },
  { value: 'never', label: 'Never' },
] as const
export type ExpiryPreset = (typeof EXPIRY_PRESETS)[number]['value']

export function expiryOf(preset: ExpiryPreset, nowMs: number): string | null {
  return preset === 'never' ? null : new Date(nowMs + Number(preset) * DAY_MS).toISOString()
}
