"""The scripts that make shells ask `lite` for completions, and its answers in the form that each script reads.

Each item of an answer has a type: ``plain`` for a word, ``dir`` for folders, ``file`` for files, and ``files`` for
files with one of some endings, which the shell itself looks for.
"""

from __future__ import annotations

from typing import ClassVar

from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

__all__ = ["SHELLS", "VARIABLE"]

#: The environment variable by which a script asks: ``bash_complete``, ``zsh_complete`` or ``fish_complete``.
VARIABLE = "_LITE_COMPLETE"

_BASH = """\
%(complete_func)s() {
    local cur="${COMP_WORDS[COMP_CWORD]}" line type value IFS=$'\\n'
    [[ $cur == "=" ]] && cur=""
    COMPREPLY=()
    while IFS= read -r line; do
        type="${line%%%%,*}" value="${line#*,}"
        case $type in
            plain) COMPREPLY+=("$value") ;;
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            files)
                compopt -o filenames
                local extglob="$(shopt -p extglob)"
                shopt -s extglob
                COMPREPLY+=($(compgen -d -- "$cur") $(compgen -f -X "!*.@($value)" -- "$cur"))
                eval "$extglob"
                ;;
        esac
    done < <(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD="$COMP_CWORD" %(complete_var)s=bash_complete "$1" 2>/dev/null)
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""

_ZSH = """\
#compdef %(prog_name)s

%(complete_func)s() {
    local -a words_found described answer
    local type value text
    answer=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) \\
        %(complete_var)s=zsh_complete ${words[1]} 2>/dev/null)}")
    for type value text in ${answer}; do
        case $type in
            plain)
                if [[ $text == _ ]]; then
                    words_found+=("$value")
                else
                    described+=("${value//:/\\\\:}:$text")
                fi
                ;;
            dir) _path_files -/ ;;
            file) _path_files -f ;;
            files) _files -g "*.(${value})(-.)" ;;
        esac
    done
    [[ -n $described ]] && _describe -V unsorted described -U
    [[ -n $words_found ]] && compadd -U -V unsorted -a words_found
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""

_FISH = """\
function %(complete_func)s
    set -l program (commandline -opc)[1]
    set -l answer (env COMP_WORDS=(commandline -cp | string collect) COMP_CWORD=(commandline -t | string collect) \\
        %(complete_var)s=fish_complete $program 2>/dev/null)
    for line in $answer
        set -l item (string split -m 1 "," -- $line)
        switch $item[1]
            case plain
                echo $item[2]
            case dir
                __fish_complete_directories (commandline -t)
            case file
                __fish_complete_path (commandline -t)
            case files
                for suffix in (string split "|" -- $item[2])
                    __fish_complete_suffix (commandline -t) .$suffix
                end
        end
    end
end

complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""


class _Bash(BashComplete):
    source_template: ClassVar[str] = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor, and the one at the cursor. bash makes ``=`` a word of its own."""
        words, incomplete = super().get_completion_args()
        pairs = zip(["", *words], words)
        return [word for before, word in pairs if word != "=" or not before.startswith("--")], incomplete

    def format_completion(self, item: CompletionItem) -> str:
        return f"{item.type},{item.value}"


class _WholeWords(ShellComplete):
    """A shell that replaces the whole word, such as ``--backend=op``, by an item."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """Return the items, with the name of the option in front if the word contains it."""
        items = super().get_completions(args, incomplete)
        option, equals, _ = incomplete.partition("=")
        if option.startswith("--") and equals:
            for item in items:
                if item.type == "plain":
                    item.value = f"{option}={item.value}"
        return items


class _Zsh(_WholeWords, ZshComplete):
    source_template: ClassVar[str] = _ZSH

    def format_completion(self, item: CompletionItem) -> str:
        return f"{item.type}\n{item.value}\n{item.help or '_'}"


class _Fish(_WholeWords, FishComplete):
    source_template: ClassVar[str] = _FISH

    def format_completion(self, item: CompletionItem) -> str:
        return f"{item.type},{item.value}" + (f"\t{item.help}" if item.help else "")


#: The shells by name.
SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}
