import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

/** The pages are served by the service itself, so that cookies and addresses are the same in both. */
const SERVICE = 'http://127.0.0.1:8080'

// oxlint-disable-next-line import/no-default-export -- Vite asks for it
export default defineConfig({
  plugins: [react()],
  build: {
    outDir: 'dist',
    assetsDir: 'assets',
    // A policy that allows no inline scripts allows no inlined modules either.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    // Browsers that know light-dark(): for older ones it would be written in a way that knows no themes.
    cssTarget: ['chrome123', 'edge123', 'firefox120', 'safari17.5'],
    reportCompressedSize: false,
  },
  server: { proxy: { '/dashboard': SERVICE, '/v1': SERVICE } },
})
