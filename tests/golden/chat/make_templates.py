"""What Hugging Face's transformers makes of chat templates: templates.json.

Usage: python make_templates.py

Needs transformers and jinja2. Each template is a line of Jinja that published templates use, or a whole template in the manner of a family of models. Without a text,
transformers refuses it.
"""

import json
from pathlib import Path

from transformers.utils.chat_template_utils import render_jinja_template

OUT = Path(__file__).resolve().parent / "templates.json"
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
MESSAGES = [
    {"role": "system", "content": "Be <b>kind</b> & \"short\", it's — é猫."},
    {"role": "user", "content": "  Hello there.\n"},
    {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHi!"},
    {"role": "user", "content": "Bye"},
]

# Jinja as it is.
JINJA = [
    "{% for m in messages[::-1] %}{{ loop.index0 }}{{ m.role }};{% endfor %}",
    "{% for m in messages[::2] %}{{ m.role }};{% endfor %}",
    "{{ 'abcé'[::-1] }}|{{ 'abc'[1:][::-1] }}",
    "{% for i in range(messages|length - 1, -1, -1) %}{{ i }},{% endfor %}",
    "{% set rest = messages[1:] %}{{ rest[0].content }}|{{ rest|length }}|{{ messages[1:][0]['role'] }}|{{ messages[:-1][-1].role }}",
    "{{ messages[0].content | tojson }}",
    "{{ {'b': 1, 'a': [1, 2.5, true, none, '<x>']} | tojson }}",
    "{{ messages[1:2] | tojson }}",
    "{% for m in messages %}{% set c = m.content %}{% if '</think>' in c %}{% set r = c.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}{% set c = c.split('</think>')[-1].lstrip('\\n') %}[{{ r }}|{{ c }}]{% endif %}{% endfor %}",
    "{{ (messages[2].content.split('</think>')|last).lstrip('\\n') }}|{{ (messages[2].content.split('</think>')|first).rstrip('\\n') }}",
    "{{ 'a b c'.split(' ', 1)[1] }}|{{ 'a b c'.rsplit(' ', 1)[0] }}|{{ ' a  b '.split() | join('-') }}|{{ 'a\\nb'.splitlines() | length }}",
    "{{ ' x '.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'aBc'.upper() }}|{{ 'aBc'.lower() }}|{{ 'ab cd'.title() }}|{{ 'ab'.capitalize() }}|{{ 'aXbX'.replace('X','-') }}|{{ 'aXbX'.replace('X','-',1) }}|{{ 'abc'.find('c') }}|{{ 'abca'.count('a') }}|{{ '12'.isdigit() }}|{{ '-'.join(['a','b']) }}|{{ 'abc'.removeprefix('a') }}",
    "{%- for m in messages -%}\n  {{- m.role -}}\n{%- endfor -%}\n",
    "{% if true %}\nA\n  {% if true %}\n  B\n  {% endif %}\n{% endif %}\n  C\n\n",
    "a{# c #}b\n{# d #}\ne",
    "x\n\n",
    "{{ [3,1,2]|sort|join }}|{{ [1,1,2]|unique|list|length }}|{{ 'a'|default('b') }}|{{ missing|default('b') }}|{{ none|default('b', true) }}|{{ ' a '|trim }}|{{ 5|string ~ 'x' }}|{{ [1,2,3]|sum }}|{{ '3'|int + 1 }}|{{ 'abc'|first }}|{{ [1,2]|last }}|{{ 'abc'|length }}|{{ {'a':1}|items|list|length }}|{{ 'a\\nb'|indent(2) }}|{{ 'ab'|reverse }}|{{ [1,2]|min }}",
    "{%- macro f(x, y='d') %}<{{ x }}{{ y }}>{%- endmacro %}{{ f(1) }}{{ f(2, y='e') }}",
    "{{ 7 // 2 }}|{{ 7 / 2 }}|{{ 6 / 2 }}|{{ 2 ** 3 }}|{{ -7 % 3 }}|{{ -7 // 2 }}|{{ 1.0 }}|{{ 1e3 }}|{{ 10000000.0 }}|{{ 0.1 + 0.2 }}",
    "{{ true }}|{{ false }}|{{ none }}|{{ True }}|{{ None }}|{{ [1, 'a', none] }}|{{ {'a': 'b'} }}|{{ ('a', 1) }}|{{ '' ~ 1 ~ none }}",
    "{{ messages[0].content is string }}|{{ messages is iterable }}|{{ messages[0] is mapping }}|{{ messages[0].x is defined }}|{{ tools is none }}|{{ tools is defined }}|{{ nothing is defined }}|{{ 1 is number }}|{{ 'abc' is iterable }}|{{ 'abc' is sequence }}|{{ messages is sequence }}|{{ true is boolean }}|{{ 3 is odd }}|{{ 1 is integer }}|{{ 1 is eq 1 }}|{{ 'a' is in ['a'] }}|{{ messages[0] is sequence }}",
    "{{ 1 < 2 < 3 }}|{{ 3 > 2 > 2 }}|{{ 1 == 1 == 1 }}|{{ 'a' not in 'abc' }}|{{ not 'x' == 'y' }}",
    "{% for m in messages[1:] %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}bad{% endif %}{% endfor %}ok",
    "{{ 'a' if false }}|{{ 'a' if messages[0].role == 'system' else 'b' }}",
    "{{ 'a' 'b' }}",
    "{% for m in messages %}{{ loop.index }}{{ loop.first }}{{ loop.last }}{{ loop.revindex0 }}{{ loop.length }}{{ loop.previtem.role if loop.previtem is defined else '-' }}{{ loop.nextitem.role if loop.nextitem is defined else '-' }}{{ loop.cycle('a','b') }};{% endfor %}",
    "{% for m in messages if m.role == 'tool' %}x{% else %}none{% endfor %}{% for m in messages if m.role != 'system' %}{{ loop.index0 }}{% endfor %}",
    "{% set x = 1 %}{% for m in messages %}{% set x = 2 %}{% endfor %}{{ x }}{% if true %}{% set x = 3 %}{% endif %}{{ x }}",
    "{{ bos_token }}{{ messages[1].content | trim }}{{ eos_token }}{{ pad_token }}|{{ bos_token + 'x' }}",
    "{% for m in messages %}{% generation %}{{ m.role }}{% endgeneration %}{% endfor %}{% if add_generation_prompt %}A{% endif %}",
    "{% for a, b in [(1, 2), (3, 4)] %}{{ a }}{{ b }};{% endfor %}{% set a, b = 1, 2 %}{{ a }}{{ b }}{{ [1,2] + [3] }}{{ 'x' * 3 }}",
    "{{ messages|map(attribute='content')|map('trim')|join('\\n') }}",
    "{{ '\\n\\n x'.lstrip() }}|{{ 'x \\n'.rstrip() }}|{{ '  x'|trim }}|{{ 'xay'|trim('xy') }}",
    "{{ messages[-1].content }}|{{ messages[-2]['role'] }}|{{ 'abc'[-1] }}",
    "{% for role, items in messages|groupby('role') %}{{ role }}{{ items|length }};{% endfor %}",
]

# JSON: html, order, Python's numbers, and the options of transformers.
JSON = [
    "{{ messages | tojson }}",
    "{{ messages | tojson(indent=2) }}",
    "{{ [] | tojson(indent=3) }}{{ {} | tojson(indent=3) }}{{ {'a': [], 'b': {}} | tojson(indent=1) }}",
    "{{ {'z': [1, {'y': none, 'x': true}], 'a': ()} | tojson(indent=4) }}",
    "{{ {'b': 1, 'a': {'d': 2, 'c': [{'f': 1, 'e': 2}]}} | tojson(sort_keys=true) }}",
    "{{ 'é猫😀' | tojson(ensure_ascii=true) }}{{ 'é猫😀' | tojson }}{{ 'é猫' | tojson(true) }}",
    "{{ {'a': 1, 'b': [1, 2]} | tojson(separators=(',', ':')) }}",
    "{{ {'a': 1, 'b': [1, 2]} | tojson(separators=(' ; ', '=>'), indent=1) }}",
    "{{ {'a': 1} | tojson(indent='--') }}",
    "{{ {'a': 1} | tojson(false, 2) }}",
    "{{ [1e16, 1e15, 123456789.5, 1e-4, 1e-5, 1.5e-7, 1e22, 1.0, -0.0, 0.1, 3] | tojson }}",
    "{{ 'a\\tb\\nc\\x00\\x1f\\x7f\\\\/\u2028<' | tojson }}",
    "{{ none | tojson }}{{ true | tojson }}{{ 'x' | tojson }}{{ 1 | tojson }}",
    "{{ missing | tojson }}",
    "{{ (1, 'a') | tojson }}{{ range(3) | list | tojson }}",
    "{{ {1: 'a', true: 'b', 'c': 2} | tojson }}",
    "{{ {'a': messages[1].content} | tojson | length }}",
    "{{ {'b': 1, 'a': 2} }}{% for key in {'b': 1, 'a': 2} %}{{ key }}{% endfor %}{{ {'b': 1, 'a': 2} | items | list }}",
    "{% for key, value in {'zeta': 1, 'alpha': '<'}.items() %}{{ key }}={{ value | tojson }};{% endfor %}",
    "{{ dict(b=1, a=2) | tojson }}",
]

# Methods of Python's texts, lists and mappings.
METHODS = [
    "{{ 'a b c'.rsplit(' ', 1) }}{{ ' a  b c '.rsplit() }}{{ ' a  b c '.rsplit(none, 1) }}{{ 'aXbXc'.rsplit('X') }}{{ 'abc'.rsplit('X', 1) }}",
    "{{ ' a  b c '.split(none, 1) }}{{ 'a,b,c'.split(',', maxsplit=1) }}{{ 'a,b'.split(sep=',') }}{{ ''.split() }}{{ ''.split(',') }}{{ 'a b'.rsplit(maxsplit=1) }}",
    "{{ 'a'.split('') }}",
    "{{ 'abcabc'.removeprefix('abc') }}|{{ 'abc'.removeprefix('x') }}|{{ 'abcabc'.removesuffix('bc') }}|{{ 'abc'.removesuffix('') }}",
    "{{ 'a=b=c'.partition('=') }}{{ 'a=b=c'.rpartition('=') }}{{ 'abc'.partition('=') }}{{ 'abc'.rpartition('=') }}",
    "{{ 'héllo'.index('l') }}{{ 'héllo'.rindex('l') }}{{ 'héllo'.find('l', 3) }}{{ 'héllo'.rfind('l', 0, 3) }}{{ 'héllo'.find('z') }}{{ 'abcabc'.count('bc', 2) }}{{ 'abc'.find('a', -2) }}",
    "{{ 'abc'.index('z') }}",
    "{{ 'abc'.startswith('b', 1) }}{{ 'abc'.endswith('b', 0, 2) }}{{ 'abc'.startswith(('x', 'a')) }}{{ 'abc'.endswith(('x', 'y')) }}{{ 'abc'.startswith(('x', 'b'), 1) }}",
    "{{ 'ab'.center(5) }}|{{ 'abc'.center(6, '*') }}|{{ 'abc'.center(2) }}|{{ 'ab'.center(7, '-') }}|{{ 'ab'.ljust(4) }}|{{ 'ab'.rjust(4, '.') }}|{{ '7'.zfill(3) }}|{{ '-7'.zfill(4) }}|{{ 'é'.rjust(2) }}",
    "{{ \"it's a b.c x-y 3d\".title() }}|{{ 'aBc ÉÀ'.swapcase() }}|{{ 'Straße'.casefold() }}|{{ 'hELLO wORLD'.capitalize() }}",
    "{{ 'Ab Cd'.istitle() }}{{ 'Ab cd'.istitle() }}{{ ''.istitle() }}{{ '12'.isdecimal() }}{{ ''.isdecimal() }}{{ 'a1'.isalnum() }}{{ 'ab'.isalpha() }}{{ ' \\t'.isspace() }}{{ 'aB'.islower() }}{{ 'AB1'.isupper() }}",
    "{{ 'a\\nb\\r\\nc\\rd'.splitlines() }}{{ 'a\\n\\nb\\n'.splitlines(true) }}{{ ''.splitlines() }}{{ 'a\\n'.splitlines(keepends=true) }}{{ 'a\\x0cb\u2028c'.splitlines() | length }}",
    "{{ 'a\\tbc\\td'.expandtabs(4) }}|{{ '\\t'.expandtabs() }}|",
    "{{ '{} and {}'.format('a', 2) }}|{{ '{b} {a}'.format(a=1, b='x') }}|{{ '{:>5}|{:03d}|{:.2f}'.format('a', 7, 1.005) }}|{{ '{0}{0}'.format('a') }}",
    "{{ [1, 2, 1].count(1) }}{{ ['a', 'b'].index('b') }}{{ [1, 2].copy() }}{{ {'a': 1}.copy() }}",
    "{{ ['a'].index('b') }}",
    "{{ {'a': 1}.get('a') }}{{ {'a': 1}.get('b') }}{{ {'a': 1}.get('b', 2) }}{{ {'b': 1, 'a': 2}.keys() | list }}{{ {'b': 1, 'a': 2}.values() | list }}",
    "{{ messages[0].get('content') | length }}{{ messages[0].get('tool_calls') is none }}{{ messages[1].get('name', 'nobody') }}",
    "{{ ' x '.lstrip() }}|{{ ' x '.rstrip() }}|{{ 'xxabxx'.rstrip('x') }}|{{ 'abcba'.strip('ab') }}|",
    "{{ 'a-b'.replace('-', '+').upper().lower().replace('', '.') }}",
    "{{ messages[2].content.split('</think>')[-1].lstrip('\\n').removesuffix('!') }}",
]

# The operator that formats texts, and takes remainders.
PERCENT = [
    "{{ '%s-%d' % ('a', 3) }}|{{ '%s' % 'a' }}|{{ '%d%%' % 7 }}|{{ '%05.1f' % 2.25 }}|{{ '%x' % 255 }}|{{ '%-4s|' % 'a' }}|{{ '%(a)s' % {'a': 1} }}",
    "{{ '%s' % [1, 2] }}|{{ '%s' % ('a',) }}|{{ '%s' % none }}|{{ '%s' % true }}|{{ '%.3s' % 'abcdef' }}",
    "{{ 7 % 3 }}{{ -7 % 3 }}{{ 7 % -3 }}{{ 7.5 % 2 }}{{ 2 * 7 % 4 }}{{ 2 + 7 % 4 }}{{ 7 % 4 * 2 }}{{ 17 % 10 % 4 }}{{ 7 % 2 ** 2 }}{{ (2 + 7) % 4 }}{{ 7 % (1 + 1) }}{{ 7 - -7 % 4 }}",
    "{% for m in messages %}{% if loop.index0 % 2 == 0 %}e{% elif loop.index % 4 == 0 and not loop.index0 % 5 == 0 %}f{% else %}o{% endif %}{% endfor %}",
    "{% set form = '<%s>' %}{% for m in messages %}{{ form % m.role }}{{ form % m['role'] | upper }}{{ 'a' + form % m.role + 'b' }}{{ form % m.role ~ 'c' }}{% endfor %}",
    "{% set t = '%s: %s' % (messages[1].role, messages[1].content | trim) %}{{ t }}|{{ ['%s' % 1, '%s' % 2] | join(',') }}|{{ ('%s' % 'x').upper() }}|{{ {'k': '%s' % 1}['k'] }}",
    "{{ '%s' % ('a' if 7 % 2 else 'b') }}|{{ 'x%sx' % 1 in 'ax1xb' }}|{{ 4 % 2 is even }}|{{ 5 % 3 == 2 and 'y' or 'n' }}|{{ 'a' if 4 % 2 == 0 else 'b' }}",
    "{{ '}}' }}|{{ '%}' }}|{{ \"{{ % }}\" }}|{{ '\\'%s' % 'a' }}|{# {{ 1 % 2 }} #}{% raw %}{{ 1 % 2 }}{% endraw %}|{ % }|%|{{ {'a': {'b': 5 % 3}} }}",
    "{{- 7 % 3 -}}  |  {{- '%s' % 1 -}}  |{{+ 1 }}",
    "{%- if 7 % 3 == 1 -%} a {%- endif -%} | {{-'%s' % 1-}} | {{ -7 % 3 }}|{{ (-7) % 3 }}|{{ 2 - 7 % 3 }}|{{ [-7 % 3, 1] }}",
    "{% if messages | length % 2 == 0 %}even{% endif %}{{ (messages | length) % 3 }}{{ messages[5 % 3].role }}{{ messages[:7 % 5] | length }}",
    "{{ '%d' % 'a' }}",
    "{{ '%s %s' % 'a' }}",
    "{{ 1 % 'a' }}",
]

# Tests and filters.
TESTS = [
    "{{ 'abc' is sequence }}{{ messages[0] is sequence }}{{ messages is sequence }}{{ 1 is sequence }}{{ none is sequence }}{{ missing is sequence }}{{ (1, 2) is sequence }}{{ {} is sequence }}{{ true is sequence }}",
    "{{ 'abc' is mapping }}{{ messages[0] is mapping }}{{ messages is mapping }}{{ missing is mapping }}{{ none is mapping }}",
    "{{ 'abc' is iterable }}{{ messages[0] is iterable }}{{ 1 is iterable }}{{ none is iterable }}{{ missing is iterable }}",
    "{{ true is number }}{{ 1 is number }}{{ 1.5 is number }}{{ '1' is number }}{{ true is integer }}{{ 1 is integer }}{{ 1.0 is integer }}{{ 1.0 is float }}{{ 1 is float }}{{ true is boolean }}{{ 1 is boolean }}",
    "{{ none is none }}{{ missing is none }}{{ missing is defined }}{{ missing is undefined }}{{ messages[0].x is defined }}{{ false is false }}{{ 0 is false }}{{ true is true }}{{ 1 is true }}",
    "{{ 'a' is string }}{{ 1 is string }}{{ 'a' is lower }}{{ 'A' is upper }}{{ 3 is odd }}{{ 4 is even }}{{ 6 is divisibleby 3 }}{{ 'a' is in ['a'] }}{{ 1 is eq 1 }}{{ 1 is not ne 1 }}{{ 1 is sameas 1 }}{{ 2 is gt 1 }}{{ 2 is greaterthan 3 }}{{ 1 is lessthan 2 }}",
    "{% if messages[0].content is string and messages[0].content is not mapping %}text{% endif %}{% if messages[0].content is sequence and messages[0].content is not string %}parts{% endif %}",
    "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}{{ messages | rejectattr('role', 'in', ['user']) | map(attribute='role') | join(',') }}{{ messages | map(attribute='name', default='x') | join }}",
    "{{ 'a b'|title }}|{{ [3, 1, 2] | sort(reverse=true) }}|{{ {'b': 1, 'a': 2} | dictsort }}|{{ [[1, 2], [3]] | sum(start=[]) }}|{{ 'abc' | reverse }}|{{ [1, 2, 3] | reverse | list }}|{{ 3.7 | int }}|{{ '3.5' | float }}|{{ 2.5 | round }}|{{ 'x' | default('y', true) }}|{{ '' | default('y', true) }}",
    "{{ 'one two three four' | truncate(length=9) }}|{{ 'a' | indent(2, first=true) }}|{{ [1, 2, 3, 4, 5] | batch(2) | list }}|{{ '<a>x</a>' | striptags }}|{{ '<a>' | e }}|{{ '<a>' | safe }}|{{ [1, none, 2] | select | list }}|{{ 'abc' | list }}|{{ [1, [2]] | string }}",
    "{{ [1, 2, 3] | max }}{{ [1, 2, 3] | min }}{{ ['b', 'a'] | sort | first }}{{ 'a,b' | replace(',', ';') }}{{ '%s!' | format('hi') }}{{ 5 | abs }}{{ [1, 2] | length }}{{ 'x' | upper }}{{ [1, 1] | unique | list }}",
    "{{ strftime_now('%Y') | length }}{{ raise_exception is defined }}",
    "{{ raise_exception('no') }}",
    "{{ 'a' | nothing }}",
    "{{ messages[0].x.y }}",
    "{{ missing }}|{{ missing | default('d') }}|{{ messages[9] is defined }}|{{ messages[0]['x'] is defined }}",
]

# White space, scopes, and what transformers adds.
BLOCKS = [
    "  {% generation %}\n  {{ bos_token }}\n  {% endgeneration %}\nx",
    "a  {%- generation -%}  b  {%- endgeneration %}  c",
    "{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}",
    "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{{ eos_token }}{% endgeneration %}{% endif %}{% endfor %}",
    "{% set ns = namespace(found=false, n=0) %}{% for m in messages %}{% if m.role == 'user' and not ns.found %}{% set ns.found = true %}{% set ns.n = loop.index %}{% endif %}{% endfor %}{{ ns.n }}{{ ns.found }}",
    "{% for m in messages %}{% if loop.index0 == 1 %}{% continue %}{% endif %}{% if m.role == 'assistant' %}{% break %}{% endif %}{{ m.role }}{% endfor %}",
    "{% macro say(m, end='|') %}{{ m.role }}:{{ m.content | trim }}{{ end }}{% endmacro %}{% for m in messages %}{{ say(m) }}{% endfor %}{{ say(messages[0], end='') }}",
    "\n\n  {# a #}  \n{% if true %}  \n  x  \n{% endif %}  \n",
    "{% set text %}a{{ bos_token }}b{% endset %}{{ text }}{{ text | upper }}",
    "{% filter upper %}a{{ bos_token }}{% endfilter %}{% macro f() %}<{{ caller('x') }}>{% endmacro %}{% call(x) f() %}{{ x }}y{% endcall %}",
    "{% with a = 5 % 3, b = 2 %}{{ a }}{{ b }}{% endwith %}",
    "{{ messages[0]['content'][:5] }}{{ messages[1:3] | length }}{{ messages[-1:][0].role }}{{ 'abc'[::-1] }}{{ messages[::2] | map(attribute='role') | list }}",
    "{{ 'a' ~ 1 ~ true ~ none }}{{ 'a' * 3 }}{{ [1] * 2 }}{{ 1 == 1.0 }}{{ 'a' < 'b' }}{{ 1 < 2 <= 2 }}{{ not true }}{{ 'x' in messages[0] }}{{ 'role' in messages[0] }}",
    "{{ tools is none }}{{ documents is none }}{{ tools }}{{ add_generation_prompt }}{{ unk_token is defined }}",
]

# Whole templates, in the manner of families of models.
WHOLE = [
    # Headers, a date, and a system message that is always there.
    "{{- bos_token }}\n{%- if messages[0]['role'] == 'system' %}\n    {%- set system = messages[0]['content']|trim %}\n    {%- set messages = messages[1:] %}\n{%- else %}\n    {%- set system = '' %}\n{%- endif %}\n{{- '<|header|>system<|/header|>\\n\\n' }}\n{%- if tools is not none %}\n    {{- 'Tools: ' + tools | tojson(indent=4) }}\n{%- endif %}\n{{- system }}\n{{- '<|turn_end|>' }}\n{%- for message in messages %}\n    {{- '<|header|>' + message['role'] + '<|/header|>\\n\\n' + message['content'] | trim + '<|turn_end|>' }}\n{%- endfor %}\n{%- if add_generation_prompt %}\n    {{- '<|header|>assistant<|/header|>\\n\\n' }}\n{%- endif %}\n",
    # Thoughts of former turns are left out, and the last question is found from the end.
    "{%- set ns = namespace(searching=true, last=messages|length - 1) %}\n{%- for message in messages[::-1] %}\n    {%- set index = (messages|length - 1) - loop.index0 %}\n    {%- if ns.searching and message.role == 'user' and message.content is string and not (message.content.startswith('<tool>') and message.content.endswith('</tool>')) %}\n        {%- set ns.searching = false %}\n        {%- set ns.last = index %}\n    {%- endif %}\n{%- endfor %}\n{%- for message in messages %}\n    {%- set content = message.content if message.content is string else '' %}\n    {%- set thought = '' %}\n    {%- if '</think>' in content %}\n        {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}\n        {%- set content = content.split('</think>')[-1].lstrip('\\n') %}\n    {%- endif %}\n    {%- if loop.index0 > ns.last %}\n        {{- '[' + thought.strip('\\n') + ']' }}\n    {%- endif %}\n    {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>\\n' }}\n{%- endfor %}\n{%- if add_generation_prompt %}\n    {{- '<|im_start|>assistant\\n' }}\n    {%- if enable_thinking is defined and enable_thinking is false %}\n        {{- '<think>\\n\\n</think>\\n\\n' }}\n    {%- endif %}\n{%- endif %}",
    # Roles must alternate, the system's words go before the first turn, and contents may be parts.
    "{{ bos_token }}\n{%- if messages[0]['role'] == 'system' -%}\n    {%- if messages[0]['content'] is string -%}\n        {%- set prefix = messages[0]['content'] + '\\n\\n' -%}\n    {%- else -%}\n        {%- set prefix = messages[0]['content'][0]['text'] + '\\n\\n' -%}\n    {%- endif -%}\n    {%- set turns = messages[1:] -%}\n{%- else -%}\n    {%- set prefix = '' -%}\n    {%- set turns = messages -%}\n{%- endif -%}\n{%- for message in turns -%}\n    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}\n        {{ raise_exception('roles must alternate') }}\n    {%- endif -%}\n    {%- if message['role'] == 'assistant' -%}\n        {%- set role = 'model' -%}\n    {%- else -%}\n        {%- set role = message['role'] -%}\n    {%- endif -%}\n    {{ '<start_of_turn>' + role + '\\n' + (prefix if loop.first else '') }}\n    {%- if message['content'] is string -%}\n        {{ message['content'] | trim }}\n    {%- elif message['content'] is iterable -%}\n        {%- for item in message['content'] -%}\n            {{ item['text'] | trim }}\n        {%- endfor -%}\n    {%- endif -%}\n    {{ '<end_of_turn>\\n' }}\n{%- endfor -%}\n{%- if add_generation_prompt -%}\n    {{ '<start_of_turn>model\\n' }}\n{%- endif -%}\n",
    # Channels by macros.
    "{%- macro header(role, channel=none) -%}\n<|start|>{{ role }}{% if channel %}<|channel|>{{ channel }}{% endif %}<|message|>\n{%- endmacro -%}\n{%- for message in messages -%}\n{%- if message.role == 'assistant' and loop.last -%}{{ header('assistant', 'final') }}{{ message.content }}<|return|>\n{%- elif message.role == 'assistant' -%}{{ header('assistant', channel='final') }}{{ message.content.rsplit('</think>', 1)[-1].strip() }}<|end|>\n{%- else -%}{{ header(message.role) }}{{ message.content }}<|end|>\n{%- endif -%}\n{%- endfor -%}\n{%- if add_generation_prompt -%}<|start|>assistant{%- endif -%}",
    # Instructions in brackets, as JSON.
    "{%- set user_messages = messages | selectattr('role', 'equalto', 'user') | list %}{{- bos_token }}{%- for message in messages %}{%- if message.role == 'user' %}{%- if message == user_messages[-1] %}{{- '[LAST]' }}{%- endif %}{{- '[INST] %s [/INST]' % message.content | tojson }}{%- elif message.role == 'assistant' %}{{- ' ' + message.content | tojson + eos_token }}{%- endif %}{%- endfor %}",
]


def rendered(template):
    case = {"template": template}
    try:
        texts, _ = render_jinja_template([MESSAGES], chat_template=template, add_generation_prompt=True, **TOKENS)
        case["text"] = texts[0]
    except Exception:
        pass
    return case


templates = [rendered(template) for part in (JINJA, JSON, METHODS, PERCENT, TESTS, BLOCKS, WHOLE) for template in part]
golden = {"tokens": TOKENS, "messages": MESSAGES, "templates": templates}
OUT.write_text(json.dumps(golden, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
