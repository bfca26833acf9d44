#!/usr/bin/env node
// How long `execute_python` of five lines takes over stdio, by the public SDK of MCP:
//     node bench/mcp.mjs ADYTON [ROUNDS]        where @modelcontextprotocol/sdk can be imported (tests/clients has a lock)
// In turn, in one session: a call by the SDK, a ping by the SDK (its own share, there and back), and the same call by
// bare lines on pipes to a second server (ours: server, supervisor, cell). Nothing is asserted: see README.md.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
const here = createRequire(process.cwd() + '/');
const load = (name) => import(pathToFileURL(here.resolve(name)));
const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');

const [program, rounds = '500'] = process.argv.slice(2);
const args = ['mcp', '--private'];
const code = 'data = [10, 20, 30, 40, 50]\ntotal = sum(data)\ncount = len(data)\nmean = total / count\nprint("Average value:", mean)\n';
const client = new Client({ name: 'bench', version: '1' }, { capabilities: {} });
await client.connect(new StdioClientTransport({ command: program, args, stderr: 'inherit' }));
const call = (session) => client.callTool({ name: 'execute_python', arguments: { code, ...session } });
const session = { session_id: (await call()).structuredContent.session_id };

const bare = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const lines = createInterface({ input: bare.stdout })[Symbol.asyncIterator]();
let id = 0;
const say = async (name, params) => {
  bare.stdin.write(JSON.stringify({ jsonrpc: '2.0', id: ++id, method: name, params }) + '\n');
  return JSON.parse((await lines.next()).value).result;
};
const bareCall = (more) => say('tools/call', { name: 'execute_python', arguments: { code, ...more } });
const bareSession = { session_id: (await bareCall()).structuredContent.session_id };

const ways = { 'SDK, one session': () => call(session), 'SDK, a session each': () => call(), 'SDK, ping': () => client.ping(), 'bare pipes, one session': () => bareCall(bareSession) };
const times = Object.fromEntries(Object.keys(ways).map(name => [name, []]));
for (let i = -20; i < Number(rounds); i++)
  for (const [name, way] of Object.entries(ways)) {
    const began = performance.now(), result = await way(), ms = performance.now() - began;
    if (result.isError) throw new Error(JSON.stringify(result));
    if (i >= 0) times[name].push(ms);
  }
const at = (list, share) => list.sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * share))].toFixed(2);
console.log('milliseconds              p50     p99     least');
for (const [name, list] of Object.entries(times)) console.log(name.padEnd(24), at(list, 0.5).padStart(6), at(list, 0.99).padStart(7), at(list, 0).padStart(8));
bare.stdin.end();
await client.close();
