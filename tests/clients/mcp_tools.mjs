#!/usr/bin/env node
// The other tools of `adyton mcp`, and what execute_python does with files, by the public SDK v1.
//   node mcp_tools.mjs -- COMMAND [ARG...]
// Last line: `N passed, N failed`; exit 1 when one failed.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { assert, pngSize, runner } from './lib/t.mjs';

const command = process.argv.slice(process.argv.indexOf('--') + 1);
const t = runner('the tools of ' + command.join(' '));
const client = new Client({ name: 'tools', version: '1' }, { capabilities: {} });
const transport = new StdioClientTransport({ command: command[0], args: command.slice(1), stderr: 'inherit' });
const call = (name, args) => client.callTool({ name, arguments: args }, undefined, { timeout: 60_000 });
const text = (result) => result.content.filter(x => x.type === 'text').map(x => x.text).join('\n');
const good = async (name, args) => { const r = await call(name, args); assert.ok(!r.isError, text(r).slice(0, 300)); return r; };
// What has failed has a structured form too, and the SDK holds it against the schema.
const bad = async (name, args, what) => { const r = await call(name, args); assert.equal(r.isError, true); assert.match(text(r), what); assert.ok(r.structuredContent.error.name); return r; };

await t.check('connect', () => client.connect(transport), 30_000);
await t.check('each tool has schemas, a title, a description and four hints', async () => {
  const { tools } = await client.listTools();
  assert.ok(tools.length >= 6);
  for (const tool of tools) {
    assert.match(tool.name, /^[a-z_]{1,64}$/); assert.ok(tool.title && tool.description.length > 40);
    assert.equal(tool.inputSchema.type, 'object'); assert.equal(tool.outputSchema.type, 'object');
    for (const hint of ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint']) assert.equal(typeof tool.annotations[hint], 'boolean');
    assert.ok(!JSON.stringify(tool).includes('"type":['), 'a type that is a list');
  }
});
let session_id;
await t.check('files of a call are there before its code', async () => {
  const r = await good('execute_python', { code: 'print(open("d/ä b.txt").read(), len(open("raw.bin", "rb").read()))',
    files: [{ name: 'd/ä b.txt', data: 'Grüße' }, { name: 'raw.bin', data_base64: 'AAEC/w==' }] });
  assert.equal(r.structuredContent.stdout, 'Grüße 4\n'); session_id = r.structuredContent.session_id;
});
await t.check('write_file, and the code finds it', async () => {
  await good('write_file', { session_id, path: 'new/in.csv', data: 'a;b\n1;2\n' });
  const r = await good('execute_python', { session_id, code: 'open("new/in.csv").read()' });
  assert.equal(r.structuredContent.result, "'a;b\\n1;2\\n'");
});
await t.check('read_file: text as text, an image as an image, bytes as bytes', async () => {
  await good('execute_python', { session_id, code: 'import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.savefig("p.png"); plt.close()\nopen("z.bin", "wb").write(bytes(range(256)))' });
  const csv = await good('read_file', { session_id, path: 'new/in.csv' });
  assert.deepEqual(csv.content, [{ type: 'text', text: 'a;b\n1;2\n' }]);
  const png = await good('read_file', { session_id, path: 'p.png' });
  assert.equal(png.content[0].type, 'image'); pngSize(png.content[0].data);
  const bytes = await good('read_file', { session_id, path: 'z.bin' });
  assert.deepEqual([...Buffer.from(bytes.content[0].resource.blob, 'base64')], [...Array(256).keys()]);
});
await t.check('list_files: sizes, types, and what has changed since', async () => {
  const before = await good('list_files', { session_id });
  const csv = before.structuredContent.files.find(f => f.path === 'new/in.csv');
  assert.equal(csv.bytes, 8); assert.match(csv.sha256, /^[0-9a-f]{64}$/);
  await good('execute_python', { session_id, code: 'import os\nos.remove("z.bin"); open("new/in.csv", "a").write("3;4\\n")' });
  const after = await good('list_files', { session_id });
  assert.match(text(after), /new\/in\.csv: 12 bytes, [^\n]*modified/); assert.match(text(after), /z\.bin \(removed\)/);
});
await t.check('a link of list_files is read as a resource', async () => {
  const links = (await good('list_files', { session_id })).content.filter(x => x.type === 'resource_link');
  const read = async (name) => (await client.readResource({ uri: links.find(x => x.name === name).uri })).contents[0];
  assert.equal((await read('d/ä b.txt')).text, 'Grüße'); assert.equal((await read('raw.bin')).blob, 'AAEC/w==');
  assert.equal((await read('p.png')).mimeType, 'image/png'); assert.equal((await client.listResources()).resources.length, 0);
  assert.equal((await client.listResourceTemplates()).resourceTemplates.length, 1);
});
await t.check('paths that lead out, and files that are not there, are tool errors', async () => {
  for (const path of ['../etc/passwd', '/etc/passwd', '']) await bad('write_file', { session_id, path, data: 'x' }, /./);
  for (const path of ['../etc/passwd', '/etc/passwd', 'no.txt', 'new']) await bad('read_file', { session_id, path }, /./);
  await good('execute_python', { session_id, code: 'import os\nos.symlink("/etc/hostname", "link")' });
  await bad('read_file', { session_id, path: 'link' }, /./);
  await bad('write_file', { session_id, path: 'x', data: 'x', data_base64: 'eA==' }, /exactly one/);
});
await t.check('a file that is too large is told, and the session goes on', async () => {
  await good('execute_python', { session_id, code: 'open("big", "wb").write(b"x" * (3 << 20))' });
  await bad('read_file', { session_id, path: 'big' }, /larger than 2 MiB/);
  await good('execute_python', { session_id, code: 'os.remove("big")' });
});
await t.check('check_python: accepted, refused with rule, line and hint, and nothing is run', async () => {
  const fine = await good('check_python', { code: 'x = 1' });
  assert.equal(fine.structuredContent.accepted, true);
  for (const code of ['def f(:', 'import ctypes, _ctypes']) {
    const r = await good('check_python', { code: 'x = 1\n' + code });
    assert.equal(r.structuredContent.accepted, false); assert.equal(r.structuredContent.findings[0].line, 2); assert.match(text(r), /line 2/);
  }
});
await t.check('a refusal tells the model what to do, and fits the schema', async () => {
  const r = await bad('execute_python', { session_id, code: 'import subprocess\nsubprocess.run(["ls"])' }, /What to do/);
  assert.equal(r.structuredContent.status, 'rejected'); assert.equal(r.structuredContent.error.name, 'SecurityError');
});
await t.check('memory: the session is lost, and both forms say so', async () => {
  const one = (await good('execute_python', { code: 'x = 1' })).structuredContent.session_id;
  await bad('execute_python', { session_id: one, code: 'b = b"x" * (1 << 30)\nb = [b * 2 for _ in range(9)]' }, /MemoryError|memory/);
});
await t.check('session_close: what was there is gone, and the error says so', async () => {
  await good('session_close', { session_id });
  for (const [name, args] of [['execute_python', { code: '1' }], ['list_files', {}], ['session_close', {}]]) await bad(name, { ...args, session_id }, /session/);
});
await t.check('arguments that are not in the schema are tool errors with their name', async () => {
  await bad('execute_python', { code: '1', timout: 3 }, /timout/);
  await bad('execute_python', { code: '1', files: [{ name: 'x' }] }, /files/);
  await bad('execute_python', { code: '1', timeout: -1 }, /timeout/);
});
await t.check('a time-out beyond what the policy allows counts as that', async () => { await good('execute_python', { code: '1', timeout: 600 }); });
await t.check('of 34 sessions the one longest unused has ended, the others live', async () => {
  const ids = [];
  for (let i = 0; i < 34; i++) ids.push((await good('execute_python', { code: `n = ${i}` })).structuredContent.session_id);
  await bad('execute_python', { session_id: ids[0], code: 'n' }, /session/);
  for (const i of [2, 33]) assert.equal((await good('execute_python', { session_id: ids[i], code: 'n' })).structuredContent.result, String(i));
});
await client.close();
t.done();
