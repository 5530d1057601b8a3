import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, parse } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress } from 'node:zlib'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin, type Rolldown } from 'vite'

/** The pages are served by the service itself, so that cookies and addresses are the same in both. */
const SERVICE = 'http://127.0.0.1:8080'

/** The letters that nearly every word is made of. */
const FIRST_FONT = 'inter-latin-wght-normal'

/** Less than so much of source is no file of its own: its head and the way there weigh as much. */
const SHARED_BYTES_MIN = 10_000

/**
 * What no page shows at first sight, or the explorer never. By itself the bundler puts what is small and
 * shared into one file with it, and the explorer would load 12 kB of dialogs for the sake of a hook.
 */
const BEHIND_A_CLICK = new RegExp(
  [
    String.raw`[\\/](Modal|ModalBase|Radio|Tabs|TextInput)[\\/]`,
    String.raw`[\\/]styles[\\/](Modal|ModalBase|Radio\w*|Tabs)\.css`,
    String.raw`[\\/](react-remove-scroll(-bar)?|use-sidecar|use-callback-ref|react-style-singleton)[\\/]`,
    String.raw`[\\/]parts[\\/](BusyButton|MoreButton|use-optimistic|NameDialog|ConfirmDialog|SecretBox|SecretDialog|NoAccess|Rows)\.`,
    String.raw`[\\/]explorer[\\/](ViewVisibility|FirstEvent)\.`,
    String.raw`[\\/]exports[\\/](ApiDownload|DownloadLink|ExportGate|exports|export-words)\.`,
    String.raw`[\\/]keys[\\/](keys|expiry)\.`,
  ].join('|'),
)

// oxlint-disable-next-line import/no-default-export -- Vite asks for it
export default defineConfig({
  plugins: [react(), bringStyles(), askEarly(), packFiles()],
  build: {
    outDir: 'dist',
    assetsDir: 'assets',
    // A policy that allows no inline scripts allows no inlined modules either.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    // Browsers that know light-dark(): for older ones it would be written in a way that knows no themes.
    cssTarget: ['chrome123', 'edge123', 'firefox120', 'safari17.5'],
    reportCompressedSize: false,
    // What every page needs is one file, which is packed better than many.
    chunkSizeWarningLimit: 700,
    rolldownOptions: {
      output: {
        chunkFileNames: ({ name }) => `assets/${shortName(name)}-[hash].js`,
        assetFileNames: ({ names: [name = 'file'] }) => `assets/${shortName(name)}-[hash][extname]`,
        codeSplitting: {
          groups: [
            { name: 'index', tags: ['$initial'], priority: 3 },
            {
              name: 'dialogs',
              test: BEHIND_A_CLICK,
              priority: 2,
              includeDependenciesRecursively: false,
            },
            {
              name: 'parts',
              priority: 1,
              minShareCount: 2,
              entriesAware: true,
              entriesAwareMergeThreshold: SHARED_BYTES_MIN,
            },
          ],
        },
      },
    },
  },
  server: { proxy: { '/dashboard': SERVICE, '/v1': SERVICE } },
})

/** Without the list of pages that share it, and without its ending. */
function shortName(name: string): string {
  return parse(name.split('~', 1)[0] ?? name).name
}

/**
 * Each part of Mantine brings its own style sheet, after those of the parts that it is made of: a page
 * loads the styles of what it shows. All of them together are twice as much as the first page needs.
 */
function bringStyles(): Plugin {
  const styles = dirname(createRequire(import.meta.url).resolve('@mantine/core/styles/global.css'))
  return {
    name: 'bring-styles',
    transform: {
      filter: { id: /@mantine[\\/]core[\\/]esm[\\/].*[\\/]\w+\.mjs$/ },
      handler: (code, id) => {
        const sheet = `${basename(id, '.mjs')}.css`
        if (!existsSync(join(styles, sheet))) return null
        return { code: `${code}\nimport '@mantine/core/styles/${sheet}'\n`, map: null }
      },
    },
  }
}

/**
 * `explorer.html`: the same page, which asks for the explorer's own files beside the common ones and not
 * after them. The service gives it to whoever goes there. Both ask for the font, which the browser would
 * find out about with the first words.
 */
function askEarly(): Plugin {
  return {
    name: 'ask-early',
    enforce: 'post',
    generateBundle: {
      order: 'post',
      handler(_options, bundle) {
        const index = bundle['index.html']
        const files = Object.values(bundle)
        const font = files.find(({ fileName }) => fileName.includes(FIRST_FONT))
        const explorer = files.find(({ fileName }) => fileName.startsWith('assets/ExplorerPage-'))
        if (index?.type !== 'asset' || !font || explorer?.type !== 'chunk') {
          throw new Error('the pages, their font or the explorer have other names now')
        }
        const fontLink = `<link rel="preload" as="font" crossorigin href="/${font.fileName}">`
        const html = String(index.source).replace('</title>', `</title>\n    ${fontLink}`)
        const links = linksOf(explorer, bundle).join('\n    ')
        index.source = html
        const source = html.replace('</head>', `  ${links}\n  </head>`)
        this.emitFile({ type: 'asset', fileName: 'explorer.html', source })
      },
    },
  }
}

/** For a page and everything that it imports, but the common file, which is named already. */
function linksOf(page: Rolldown.OutputChunk, bundle: Rolldown.OutputBundle): string[] {
  const chunks = new Set([page])
  // A set goes on to what is added to it meanwhile.
  for (const { imports } of chunks) {
    for (const name of imports) {
      const part = bundle[name]
      if (part?.type === 'chunk' && !part.isEntry) chunks.add(part)
    }
  }
  const sheets = new Set(
    [...chunks].flatMap((chunk) => [...(chunk.viteMetadata?.importedCss ?? [])]),
  )
  return [
    ...[...chunks].map(
      ({ fileName }) => `<link rel="modulepreload" crossorigin href="/${fileName}">`,
    ),
    ...[...sheets].map((name) => `<link rel="preload" as="style" crossorigin href="/${name}">`),
  ]
}

/** Each script and style sheet packed with Brotli beside it, a seventh smaller than with gzip. */
function packFiles(): Plugin {
  const pack = promisify(brotliCompress)
  return {
    name: 'pack-files',
    generateBundle: {
      order: 'post',
      async handler(_options, bundle) {
        const files = Object.values(bundle).filter(({ fileName }) => /\.(js|css)$/.test(fileName))
        await Promise.all(
          files.map(async (file) => {
            const source = await pack(file.type === 'chunk' ? file.code : file.source)
            this.emitFile({ type: 'asset', fileName: `${file.fileName}.br`, source })
          }),
        )
      },
    },
  }
}
