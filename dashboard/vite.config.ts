import { existsSync, globSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, parse } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress } from 'node:zlib'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin, type Rolldown } from 'vite'

/** In production the service serves the pages itself, so cookies and URLs are the same in both. */
const SERVICE = 'http://127.0.0.1:8080'

/** The Latin letters, which every page shows. */
const FIRST_FONT = 'inter-latin-wght-normal'

const EXPLORER_PAGE = join(import.meta.dirname, 'src/pages/explorer/ExplorerPage.tsx')

const LIBRARY = /[\\/]node_modules[\\/]/

/** Less source than this gets no file of its own, because the request would cost more than it saves. */
const SHARED_BYTES_MIN = 10_000

/** Modules that several pages load. Each set of pages gets a file, except for small ones, which are merged. */
const SHARED = {
  minShareCount: 2,
  entriesAware: true,
  entriesAwareMergeThreshold: SHARED_BYTES_MIN,
  includeDependenciesRecursively: false,
}

// oxlint-disable-next-line import/no-default-export -- Vite requires it
export default defineConfig({
  plugins: [
    react(),
    importStyles(),
    dropMenuParts(),
    refuseCycles(),
    preloadExplorer(),
    compressFiles(),
  ],
  build: {
    outDir: 'dist',
    assetsDir: 'assets',
    // The content security policy allows no inline scripts, and so no inlined modules.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    // Browsers that support light-dark(). For older ones, Vite would replace it with code that ignores themes.
    cssTarget: ['chrome123', 'edge123', 'firefox120', 'safari17.5'],
    reportCompressedSize: false,
    // What every page needs is in one file, which compresses better than many.
    chunkSizeWarningLimit: 700,
    rolldownOptions: {
      output: {
        chunkFileNames: ({ name }) => `assets/${shortName(name)}-[hash].js`,
        assetFileNames: ({ names: [name = 'file'] }) => `assets/${shortName(name)}-[hash][extname]`,
        codeSplitting: {
          groups: [
            { name: 'index', tags: ['$initial'], priority: 4 },
            // The explorer loads it soon after its first rows, and nothing else with it.
            { name: 'verify-event', test: /[\\/]verify-event\.ts$/, priority: 4 },
            // Otherwise, small modules of the explorer would be merged with dialogs, which it loads on a click.
            { ...SHARED, name: explorerChunk(), priority: 3 },
            // Not merged: libraries import each other, and a merged file would import one that imports it.
            {
              ...SHARED,
              entriesAwareMergeThreshold: 0,
              name: 'library',
              test: LIBRARY,
              priority: 2,
            },
            { ...SHARED, name: folderChunk, priority: 1 },
          ],
        },
      },
    },
  },
  server: { proxy: { '/dashboard': SERVICE, '/v1': SERVICE } },
})

/** The chunk of what the explorer page imports, directly or not. Dynamic imports don't count. */
function explorerChunk(): Rolldown.CodeSplittingNameFunction {
  let imports: Set<string> | null = null
  return (id, context) => {
    imports ??= importsOf(EXPLORER_PAGE, context)
    return imports.has(id) ? 'first' : null
  }
}

function importsOf(
  page: string,
  context: { getModuleInfo: (id: string) => ModuleInfo | null },
): Set<string> {
  const ids = new Set([page])
  // A Set's iterator also visits items that are added during the loop.
  for (const id of ids) {
    const { importedIds = [], code = null } = context.getModuleInfo(id) ?? {}
    for (const imported of importedIds) {
      if (!MANTINE.test(imported)) ids.add(imported)
      else usedOf(context.getModuleInfo(imported), code).forEach((used) => ids.add(used))
    }
  }
  return ids
}

type ModuleInfo = { importedIds: string[]; code: string | null }

/** Imports every component, so a page that imports it needs only what it names. */
const MANTINE = /@mantine[\\/]core[\\/]esm[\\/]index\.mjs$/

function usedOf(mantine: ModuleInfo | null, code: string | null): string[] {
  const list = /import\s*\{([^}]+)\}\s*from\s*["']@mantine\/core["']/.exec(code ?? '')?.[1] ?? ''
  const names = new Set(list.match(/\w+/g))
  return (mantine?.importedIds ?? []).filter((id) => names.has(basename(id, '.mjs')))
}

/** The chunk of a folder of pages, or of the parts that all pages share. */
function folderChunk(id: string): string {
  return /[\\/]src[\\/]pages[\\/]([^\\/]+)/.exec(id)?.[1] ?? 'parts'
}

/** Drops the list of pages that share the chunk, and the extension. */
function shortName(name: string): string {
  return parse(name.split('~', 1)[0] ?? name).name
}

/** Components whose styles are in the sheet of another one, which pages may load without it. */
const SHEETS: Partial<Record<string, string>> = { ComboboxChevron: 'Combobox' }

/**
 * Makes each Mantine component import its own style sheet, after those of the components it uses, so a page
 * loads only the styles of what it shows. All style sheets together are twice what the first page needs.
 */
function importStyles(): Plugin {
  const styles = dirname(createRequire(import.meta.url).resolve('@mantine/core/styles/global.css'))
  return {
    name: 'import-styles',
    transform: {
      filter: { id: /@mantine[\\/]core[\\/]esm[\\/].*[\\/]\w+\.mjs$/ },
      handler: (code, id) => {
        const name = basename(id, '.mjs')
        const sheet = `${SHEETS[name] ?? name}.css`
        if (!existsSync(join(styles, sheet))) return null
        return { code: `${code}\nimport '@mantine/core/styles/${sheet}'\n`, map: null }
      },
    },
  }
}

/**
 * Drops the parts of Mantine's menu that no page uses, such as nested menus and search. It assigns them all to
 * `Menu`, so the bundler would keep them: 3 kB of the first load.
 */
function dropMenuParts(): Plugin {
  const sources = globSync(join(import.meta.dirname, 'src/**/*.tsx'))
  const uses = sources.flatMap(
    (path) => readFileSync(path, 'utf8').match(/\bMenu\.[A-Z]\w+/g) ?? [],
  )
  const used = new Set(uses)
  return {
    name: 'drop-menu-parts',
    transform: {
      filter: { id: /@mantine[\\/]core[\\/]esm[\\/]components[\\/]Menu[\\/]Menu\.mjs$/ },
      handler: (code) => ({
        code: code.replaceAll(/^(Menu\.[A-Z]\w+) = .*$/gm, (line, part) =>
          used.has(String(part)) ? line : '',
        ),
        map: null,
      }),
    },
  }
}

/** Fails if files import each other in a circle: one of them would then run before what it needs is defined. */
function refuseCycles(): Plugin {
  return {
    name: 'refuse-cycles',
    generateBundle: (_options, bundle) => {
      for (const file of Object.values(bundle)) {
        if (file.type !== 'chunk' || !chunksOf(file.imports, bundle).has(file)) continue
        throw new Error(`${file.fileName} imports itself through other files: see codeSplitting`)
      }
    },
  }
}

/** The files of these names, and all that they import, directly or not. */
function chunksOf(
  names: readonly string[],
  bundle: Rolldown.OutputBundle,
): Set<Rolldown.OutputChunk> {
  const chunks = new Set(names.flatMap((name) => chunkNamed(name, bundle)))
  // A Set's iterator also visits items that are added during the loop.
  for (const { imports } of chunks) {
    for (const name of imports) chunkNamed(name, bundle).forEach((chunk) => chunks.add(chunk))
  }
  return chunks
}

function chunkNamed(name: string, bundle: Rolldown.OutputBundle): Rolldown.OutputChunk[] {
  const file = bundle[name]
  return file?.type === 'chunk' ? [file] : []
}

/**
 * Emits `explorer.html`, which preloads the explorer's own files together with the common ones instead of after
 * them. The service sends it for the explorer's URL. Both pages preload the font, which the browser would
 * otherwise discover with the first text.
 */
function preloadExplorer(): Plugin {
  return {
    name: 'preload-explorer',
    enforce: 'post',
    generateBundle: {
      order: 'post',
      handler(_options, bundle) {
        const index = bundle['index.html']
        const files = Object.values(bundle)
        const font = files.find(({ fileName }) => fileName.includes(FIRST_FONT))
        const explorer = files.find(({ fileName }) => fileName.startsWith('assets/ExplorerPage-'))
        if (index?.type !== 'asset' || !font || explorer?.type !== 'chunk') {
          throw new Error(
            'index.html, the font or the explorer chunk was renamed: update vite.config.ts',
          )
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

/** Links for a page and everything it imports, except the common file, which index.html already has. */
function linksOf(page: Rolldown.OutputChunk, bundle: Rolldown.OutputBundle): string[] {
  const chunks = [page, ...[...chunksOf(page.imports, bundle)].filter(({ isEntry }) => !isEntry)]
  const sheets = new Set(chunks.flatMap((chunk) => [...(chunk.viteMetadata?.importedCss ?? [])]))
  return [
    ...chunks.map(({ fileName }) => `<link rel="modulepreload" crossorigin href="/${fileName}">`),
    ...[...sheets].map((name) => `<link rel="preload" as="style" crossorigin href="/${name}">`),
  ]
}

/** Emits a Brotli copy of each script and style sheet, a seventh smaller than gzip. */
function compressFiles(): Plugin {
  const compress = promisify(brotliCompress)
  return {
    name: 'compress-files',
    generateBundle: {
      order: 'post',
      async handler(_options, bundle) {
        const files = Object.values(bundle).filter(({ fileName }) => /\.(js|css)$/.test(fileName))
        await Promise.all(
          files.map(async (file) => {
            const source = await compress(file.type === 'chunk' ? file.code : file.source)
            this.emitFile({ type: 'asset', fileName: `${file.fileName}.br`, source })
          }),
        )
      },
    },
  }
}
