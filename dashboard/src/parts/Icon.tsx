/** The complete set, on a 24-pixel grid with a stroke of 2, so that no icon library is needed. */
const PATHS = {
  search: 'M11 4a7 7 0 1 0 0 14a7 7 0 0 0 0-14M20 20l-4-4',
  export: 'M12 3v12M7 10l5 5l5-5M4 20h16',
  webhook: 'M12 7a3 3 0 1 1 2.6 4.5L11 18M7 13a3.5 3.5 0 1 0 3.4 4.5H18M17 14a3.5 3.5 0 1 1-1 6.8',
  key: 'M15 4a5 5 0 1 1-4.6 7L4 17v3h4v-3h3l1.6-1.6A5 5 0 0 1 15 4M16 8h.01',
  shield: 'M12 3l7 3v5c0 5-3 8-7 10c-4-2-7-5-7-10V6zM9 12l2 2l4-4',
  company: 'M4 20V6l8-3v17M12 9l8 3v8M3 20h18M8 9h.01M8 13h.01M16 15h.01',
  people:
    'M9 11a4 4 0 1 0 0-8a4 4 0 0 0 0 8M2 21a7 7 0 0 1 14 0M16 4a4 4 0 0 1 0 7M18 15a7 7 0 0 1 4 6',
  activity: 'M3 12h4l3 8l4-16l3 8h4',
  chart: 'M4 20V10M10 20V4M16 20v-7M21 20H3',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  check: 'M5 12l5 5l9-10',
  close: 'M6 6l12 12M18 6L6 18',
  chevron: 'M9 6l6 6l-6 6',
  down: 'M6 9l6 6l6-6',
  plus: 'M12 5v14M5 12h14',
  minus: 'M5 12h14',
  refresh: 'M20 11a8 8 0 1 0-2 6M20 4v7h-7',
  alert: 'M12 4l9 16H3zM12 10v4M12 17h.01',
  info: 'M12 3a9 9 0 1 0 0 18a9 9 0 0 0 0-18M12 11v5M12 8h.01',
  clock: 'M12 3a9 9 0 1 0 0 18a9 9 0 0 0 0-18M12 7v5l3 2',
  trash: 'M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13',
  edit: 'M4 20h4L20 8l-4-4L4 16z',
  link: 'M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 6 6l1-1',
  filter: 'M4 5h16l-6 8v6l-4-2v-4z',
  exclude: 'M12 3a9 9 0 1 0 0 18a9 9 0 0 0 0-18M6 6l12 12',
  star: 'M12 4l2.5 5l5.5.8l-4 3.9l1 5.5l-5-2.6l-5 2.6l1-5.5l-4-3.9l5.5-.8z',
  menu: 'M4 7h16M4 12h16M4 17h16',
  more: 'M5 11.2a.8.8 0 1 0 0 1.6a.8.8 0 0 0 0-1.6M12 11.2a.8.8 0 1 0 0 1.6a.8.8 0 0 0 0-1.6M19 11.2a.8.8 0 1 0 0 1.6a.8.8 0 0 0 0-1.6',
  braces:
    'M9 4H8a2 2 0 0 0-2 2v4l-2 2l2 2v4a2 2 0 0 0 2 2h1M15 4h1a2 2 0 0 1 2 2v4l2 2l-2 2v4a2 2 0 0 1-2 2h-1',
  columns: 'M4 4h16v16H4zM10 4v16M15 4v16',
  play: 'M7 5l11 7l-11 7z',
  pause: 'M8 5v14M16 5v14',
  bell: 'M6 16V11a6 6 0 0 1 12 0v5l2 2H4zM10 21h4M12 3v2',
} as const

export type IconName = keyof typeof PATHS

/** Use it beside text or on a labeled button only, because screen readers skip it. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.8"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={PATHS[name]} />
    </svg>
  )
}
