import { randomBytes } from 'node:crypto'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { createStaticFile, sendStaticFile, type StaticFile } from './static-file.ts'

const TYPES: Record<string, string> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}
const COMPRESSED_TYPES: ReadonlySet<string> = new Set(['.js', '.css', '.svg'])
/** File names contain a digest of the content, so a file never changes. */
const IMMUTABLE = 'public, max-age=31536000, immutable'
/** One program. The page where most users start also lists the explorer's files. */
const PAGES: Record<string, string> = {
  '/': 'explorer.html',
  '/app/explorer': 'explorer.html',
  '/app': 'index.html',
  '/app/*': 'index.html',
}
const NONCE_MARK = '%STYLE_NONCE%'

/**
 * Serves the dashboard's pages: `/`, everything under `/app`, and their files. The files are few and small,
 * so they are read once and kept in memory. If they are missing, a page explains how to build them.
 */
export function servePages(app: FastifyInstance, folder: string | null): void {
  for (const [path, name] of Object.entries(PAGES)) {
    const page = folder === null ? MISSING_PAGE : readFileSync(join(folder, name), 'utf8')
    app.get(path, (_request, reply) => sendPage(page, reply))
  }
  if (folder === null) return
  for (const [path, file] of readFiles(folder)) {
    const cacheControl = path.startsWith('/assets/') ? IMMUTABLE : 'no-cache'
    app.get(path, (request, reply) => sendStaticFile(file, request, reply, cacheControl))
  }
}

function readFiles(folder: string): Map<string, StaticFile> {
  const files = new Map<string, StaticFile>()
  for (const path of globSync(`${folder}/**/*`, { withFileTypes: false })) {
    const type = TYPES[extname(path)]
    if (type === undefined) continue
    const plain = readFileSync(path)
    const name = `/${relative(folder, path).split(sep).join('/')}`
    const gzip = COMPRESSED_TYPES.has(extname(path)) ? gzipSync(plain, { level: 9 }) : null
    // Compressed when the pages are built: Brotli takes seconds, which is too slow at startup.
    const brotli = existsSync(`${path}.br`) ? readFileSync(`${path}.br`) : null
    files.set(name, createStaticFile(type, { plain, gzip, brotli }))
  }
  return files
}

function sendPage(page: string, reply: FastifyReply): FastifyReply {
  const nonce = randomBytes(16).toString('base64')
  return reply
    .headers({
      'content-security-policy': policyWith(nonce),
      'referrer-policy': 'no-referrer',
      'x-frame-options': 'DENY',
      'cache-control': 'no-cache',
    })
    .type('text/html; charset=utf-8')
    .send(page.replaceAll(NONCE_MARK, nonce))
}

/**
 * Allows nothing from other hosts, only our script files, and only our style files and the styles they add.
 */
function policyWith(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

const MISSING_PAGE = `<!doctype html>
<html lang="en">
  <meta charset="utf-8">
  <title>Annals</title>
  <h1>The dashboard is not built</h1>
  <p>The API works: see <a href="/docs">the reference</a>. To build the dashboard, run <code>npm install</code> in
  the project and start the service again. If that doesn’t help, <code>npm run build -w dashboard</code>
  shows why. Releases include the dashboard.</p>
</html>
`
