// Installs what package-lock.json names into a folder, as `npm ci` would: `node install.mjs FOLDER`.
// (npm itself would bring some 400 packages of Debian; this client has no dependencies.)
//
// Exit code 77: the registry cannot be reached, the last line says why. 1: what came is not what the
// lock says.
import {execFileSync} from 'node:child_process';
import {createHash} from 'node:crypto';
import {copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2];
const lock = JSON.parse(readFileSync(join(here, 'package-lock.json')));

function install(place, {resolved, integrity}) {
  const folder = join(target, place);
  const mark = join(folder, '.integrity');
  if (existsSync(mark) && readFileSync(mark, 'utf8') === integrity) return;
  const archive = join(target, 'archive.tgz');
  try {
    execFileSync('curl', ['--fail', '--silent', '--show-error', '--location', '--connect-timeout', '10',
                          '--max-time', '40', '--output', archive, resolved], {stdio: 'pipe'});
  } catch (failed) {
    console.log(`cannot fetch ${resolved}: ${String(failed.stderr || failed.message).trim()}`);
    process.exit(77);
  }
  const found = 'sha512-' + createHash('sha512').update(readFileSync(archive)).digest('base64');
  if (found !== integrity) {
    console.log(`${resolved} has integrity ${found}; package-lock.json says ${integrity}`);
    process.exit(1);
  }
  const unpacked = join(target, 'unpacked');
  rmSync(unpacked, {recursive: true, force: true});
  mkdirSync(unpacked, {recursive: true});
  execFileSync('tar', ['--extract', '--gzip', '--file', archive, '--directory', unpacked]);
  rmSync(folder, {recursive: true, force: true});
  mkdirSync(dirname(folder), {recursive: true});
  renameSync(join(unpacked, 'package'), folder);
  rmSync(unpacked, {recursive: true});
  rmSync(archive);
  writeFileSync(mark, integrity);
}

mkdirSync(target, {recursive: true});
for (const [place, what] of Object.entries(lock.packages)) if (place !== '') install(place, what);
// Imports are looked for beside the importing file.
copyFileSync(join(here, 'client.mjs'), join(target, 'client.mjs'));
