import { createTheme, type CSSVariablesResolver, type MantineColorsTuple } from '@mantine/core'

/** The only accent color. Status colors are green, yellow and red, and always come with text. */
const ink: MantineColorsTuple = [
  '#eef3ff',
  '#dbe5fb',
  '#b5c8f4',
  '#8ba9ec',
  '#698ee6',
  '#527de3',
  '#4573e2',
  '#3661c9',
  '#2c56b4',
  '#1d4a9f',
]

/** Grays with a tint of the accent, like the surfaces in app.css. */
const dark: MantineColorsTuple = [
  '#ced3de',
  '#b5bccb',
  '#9aa3b5',
  '#7c8598',
  '#3a404d',
  '#2b2f38',
  '#222630',
  '#16181d',
  '#121418',
  '#0d0f12',
]

/** Dark enough for white text, in the shades that buttons use. */
const red: MantineColorsTuple = [
  '#fff0f0',
  '#ffdede',
  '#ffbcbc',
  '#ff9c9c',
  '#ff8080',
  '#e24a4a',
  '#c22a2a',
  '#c22a2a',
  '#ad2424',
  '#961f1f',
]

export const theme = createTheme({
  primaryColor: 'ink',
  // Both themes put white text on it, so it is equally dark in both.
  primaryShade: 7,
  colors: { ink, dark, red },
  autoContrast: true,
  fontFamily: "'Inter Variable', system-ui, sans-serif",
  fontFamilyMonospace: "ui-monospace, 'SF Mono', Menlo, Consolas, monospace",
  fontSizes: { xs: '12px', sm: '13px', md: '14px', lg: '16px', xl: '20px' },
  headings: { fontWeight: '600', sizes: { h1: { fontSize: '20px' }, h2: { fontSize: '16px' } } },
  defaultRadius: 'sm',
  cursorType: 'pointer',
  respectReducedMotion: true,
  components: {
    // A close icon needs a label for screen readers, and a dialog's header isn't the page's header.
    Modal: {
      defaultProps: { closeButtonProps: { 'aria-label': 'Close' } },
      styles: { title: { fontWeight: 600 } },
    },
    ModalHeader: { defaultProps: { role: 'presentation' } },
    Drawer: { defaultProps: { closeButtonProps: { 'aria-label': 'Close' } } },
    DrawerHeader: { defaultProps: { role: 'presentation' } },
    // A menu may contain only its items, and the first one gets the focus.
    Menu: { defaultProps: { withInitialFocusPlaceholder: false } },
    // Menus and selects open inside `main`, because all content must be within a landmark.
    Popover: { defaultProps: { portalProps: { target: '#content' } } },
  },
})

/** Replaces Mantine's colors that have too little contrast with ours from app.css. */
export const cssVariables: CSSVariablesResolver = () => {
  const boxes = {
    '--mantine-color-dimmed': 'var(--text-soft)',
    '--mantine-color-placeholder': 'var(--text-soft)',
    '--mantine-color-gray-light-color': 'var(--text-soft)',
    '--mantine-color-error': 'var(--bad)',
    '--mantine-color-yellow-light': 'var(--warn-soft)',
    '--mantine-color-yellow-light-color': 'var(--warn)',
    '--mantine-color-red-light': 'var(--bad-soft)',
    '--mantine-color-red-light-color': 'var(--bad)',
    '--mantine-color-green-light': 'var(--good-soft)',
    '--mantine-color-green-light-color': 'var(--good)',
  }
  return { variables: {}, light: boxes, dark: boxes }
}
