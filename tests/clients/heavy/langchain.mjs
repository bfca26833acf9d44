#!/usr/bin/env node
// LangChain's MCP adapter and LangGraph's agent run a loop of tools against `adyton mcp`, with a model that is a script.
//   node langchain.mjs COMMAND [ARG...]
// Prints what the agent answers; exit 1 when the tools did not do their part.
import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage, HumanMessage } from '@langchain/core/messages';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { MultiServerMCPClient } from '@langchain/mcp-adapters';
import assert from 'node:assert/strict';

const [command, ...args] = process.argv.slice(2);
const text = (message) => typeof message.content === 'string' ? message.content : JSON.stringify(message.content);
let session_id;

// Each turn reads what came of the one before: a failure, then the state of its session.
const turns = [
  () => ({ code: 'x = 6\n1/0' }),
  (last) => { assert.match(text(last), /ZeroDivisionError/); session_id = /s_[0-9a-f]{32}/.exec(text(last))?.[0]; assert.ok(session_id); return { session_id, code: 'x * 7' }; },
  (last) => { assert.match(text(last), /42/); return { session_id, code: 'import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()' }; },
];

class Scripted extends BaseChatModel {
  turn = 0;
  _llmType() { return 'scripted'; }
  bindTools(tools) { assert.ok(tools.some(tool => tool.name === 'execute_python')); return this; }
  async _generate(messages) {
    const last = messages[messages.length - 1], turn = turns[this.turn++];
    if (turn) return { generations: [{ text: '', message: new AIMessage({ content: '', tool_calls: [{ id: `c${this.turn}`, name: 'execute_python', args: turn(last) }] }) }] };
    assert.match(text(last) + JSON.stringify(last.artifact ?? ''), /image/);
    return { generations: [{ text: '', message: new AIMessage('All is well.') }] };
  }
}

const client = new MultiServerMCPClient({ mcpServers: { python: { transport: 'stdio', command, args } } });
try {
  const agent = createReactAgent({ llm: new Scripted({}), tools: await client.getTools() });
  const { messages } = await agent.invoke({ messages: [new HumanMessage('How much is it?')] });
  console.log(text(messages[messages.length - 1]));
} finally { await client.close(); }
