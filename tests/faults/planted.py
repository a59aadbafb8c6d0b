"""Faults that the tests must find: each is a one-line change to a copy of the sources that makes some result wrong.

``make test-full PART=faults`` plants each of them and runs the test that is listed for it, which must fail.
A fault that no test finds is a gap in the tests. The list is not about style or speed: every fault would give a user a
wrong number, lost data, a crash, or a silent change of behaviour.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["FAULTS", "Fault"]


class Fault(NamedTuple):
    """One planted fault.

    Attributes:
        name: unique, says what becomes wrong.
        file: path of the source file, from the root of the repository.
        original: the text to change; it occurs once in the file.
        faulty: the text that replaces it.
        found_by: a test (``path::name``) or file that must fail, with ``--part all`` if it is of the full tier.
    """

    name: str
    file: str
    original: str
    faulty: str
    found_by: str


_CORE = "core/src/lite_core/"
_CORE_TESTS = "core/tests/"
_COMPILER = "plugins/lite_compiler/src/lite_compiler/"
_COMPILER_TESTS = "plugins/lite_compiler/tests/"
_CPU = "plugins/lite_cpu/src/lite_cpu/"
_CPU_TESTS = "plugins/lite_cpu/tests/"
_OPENCL = "plugins/lite_opencl/src/lite_opencl/"
_OPENCL_TESTS = "plugins/lite_opencl/tests/"
_ONNX = "plugins/lite_onnx/src/lite_onnx/"
_PADDLE = "plugins/lite_paddle/src/lite_paddle/"
_TOOLS = "plugins/lite_tools/src/lite_tools/"
_SUITE = "conformance/src/lite_conformance/"

FAULTS = (
    Fault(
        "arena: a tensor may overlap another in the step where the other is read last",
        _CORE + "memory/arena.py",
        "live = [j for j in live if intervals[j].last >= first]",
        "live = [j for j in live if intervals[j].last > first]",
        _CORE_TESTS + "test_arena.py",
    ),
    Fault(
        "plans: the plan used last is evicted instead of the oldest",
        _CORE + "schedule/plan_cache.py",
        "popitem(last=False)",
        "popitem(last=True)",
        _CORE_TESTS + "test_plan_cache.py",
    ),
    Fault(
        "taps: an input is returned without a copy",
        "plugins/lite_tools/src/lite_tools/taps.py",
        "a.copy() if name in wanted else a",
        "a",
        "plugins/lite_tools/tests/test_taps.py",
    ),
    Fault(
        "taps: of the values in a loop only the last is returned",
        "plugins/lite_tools/src/lite_tools/taps.py",
        "self.found.setdefault(name, []).append(tap)",
        "self.found[name] = [tap]",
        "plugins/lite_tools/tests/test_taps.py",
    ),
    Fault(
        "partitions: a partition may depend on one that depends on it",
        _CORE + "schedule/partition.py",
        "levels.append(max([levels[b]",
        "levels.append(min([levels[b]",
        _CORE_TESTS + "test_backend.py",
    ),
    Fault(
        "common subexpressions: nodes that differ in their attributes count as equal",
        _CORE + "passes/common_subexpression.py",
        "tuple((name, _attribute_key(a)) for name, a in attributes.items()),",
        "(),",
        _CORE_TESTS + "test_pass_common_subexpression.py",
    ),
    Fault(
        "batch normalization: epsilon is left out where it is folded",
        _CORE + "passes/batch_norm_folding.py",
        'np.sqrt(variance + attributes["epsilon"])',
        "np.sqrt(variance)",
        _CORE_TESTS + "test_pass_batch_norm_folding.py",
    ),
    Fault(
        "inputs: an array of another element type is converted without a word",
        _CORE + "session/arguments.py",
        'elif is_array and not (array.dtype.kind in "iu"',
        'elif False and not (array.dtype.kind in "iu"',
        _CORE_TESTS + "test_session.py",
    ),
    Fault(
        "out=: an output may overwrite an input that is still read",
        _CORE + "session/arguments.py",
        "return not updates and np.may_share_memory(array, given)",
        "return False",
        "plugins/lite_x86/tests/test_backend.py",
    ),
    Fault(
        "model file: checksums are not compared",
        _CORE + "container/mapping.py",
        "if zlib.crc32(found) != checksum:",
        "if False:",
        _CORE_TESTS + "test_container_damage.py",
    ),
    Fault(
        "plugins: one that calls sys.exit() when it is imported ends the program",
        _CORE + "plugins/manager.py",
        "except BaseException as error:",
        "except Exception as error:",
        _CORE_TESTS + "test_plugins.py",
    ),
    Fault(
        "plugins: of two packages that claim a backend, the first gets it",
        _CORE + "plugins/claims.py",
        "elif len(rivals) > 1:",
        "elif rivals[0] is not record:",
        _CORE_TESTS + "test_claims.py",
    ),
    Fault(
        "plugins: a pass that raises has edited the graph",
        _CORE + "session/ready.py",
        "apply(self._pass, _protected_copy(graph))",
        "apply(self._pass, graph)",
        _CORE_TESTS + "test_plugin_isolation.py",
    ),
    Fault(
        "probing: a backend that has ended a process is asked again at once",
        _CORE + "schedule/probing.py",
        "if automatic and now < again:",
        "if False:",
        _CORE_TESTS + "test_probing.py",
    ),
    Fault(
        "plugins: one written for an older API is loaded",
        _CORE + "plugins/versions.py",
        "if least <= API_VERSION <= greatest:",
        "if least <= API_VERSION:",
        _CORE_TESTS + "test_plugin_versions.py",
    ),
    Fault(
        "disk cache: the most recently used entries are evicted",
        _COMPILER + "disk_cache.py",
        "for _, size, path in sorted(entries):",
        "for _, size, path in sorted(entries, reverse=True):",
        _COMPILER_TESTS + "test_disk_cache.py",
    ),
    Fault(
        "private files: a folder that a group can write to is used",
        _CORE + "private_files.py",
        "(stat.S_IWGRP | stat.S_IWOTH)",
        "stat.S_IWOTH",
        _CORE_TESTS + "test_private_files.py",
    ),
    Fault(
        "private files: a folder that all can write to is used if it has the sticky bit",
        _CORE + "private_files.py",
        "(is_parent and is_sticky)",
        "is_sticky",
        _CORE_TESTS + "test_private_files.py",
    ),
    Fault(
        "private files: a link at the place of a file is followed",
        _CORE + "private_files.py",
        '"O_NOFOLLOW", "O_NONBLOCK"',
        '"O_NONBLOCK"',
        _CORE_TESTS + "test_private_files.py",
    ),
    Fault(
        "private files: a FIFO at the place of a file is waited for",
        _CORE + "private_files.py",
        '"O_NOFOLLOW", "O_NONBLOCK"',
        '"O_NOFOLLOW"',
        _CORE_TESTS + "test_private_files.py",
    ),
    Fault(
        "non-maximum suppression: a box with exactly the allowed overlap is dropped",
        _CORE + "ops/boxes.py",
        "worst[start:] <= threshold",
        "worst[start:] < threshold",
        _CORE_TESTS + "test_ops_detection.py",
    ),
    Fault(
        "broadcasting: missing axes are added at the end",
        _CORE + "ops/inference.py",
        "a = (1,) * (rank - len(result)) + result",
        "a = result + (1,) * (rank - len(result))",
        _CORE_TESTS + "test_ops_elementwise.py",
    ),
    Fault(
        "dimensions: floor division loses the remainder of the constant term",
        _CORE + "ir/dims.py",
        "remainder + coefficient % b",
        "remainder",
        _CORE_TESTS + "test_dims.py",
    ),
    Fault(
        "resize: half-pixel coordinates are those of asymmetric ones",
        _CORE + "ops/resize.py",
        "half_pixel = (2 * x + 1) * q - p",
        "half_pixel = 2 * x * q",
        _CORE_TESTS + "test_ops_resize.py",
    ),
    Fault(
        "kernel backend: the second kernel of an operator is never tried",
        _CORE + "kernel_backend.py",
        "if isinstance(answer, Yes):",
        "if True:",
        _CORE_TESTS + "test_backend.py",
    ),
    Fault(
        "islands: no node ever moves, however much copies cost",
        _CORE + "schedule/islands.py",
        "_LEAST_GAIN = 1e-9",
        "_LEAST_GAIN = 1e9",
        _CORE_TESTS + "test_islands.py",
    ),
    Fault(
        "fusion: a value that a second node reads is not kept",
        _COMPILER + "fusion.py",
        "and uses[v] == 1 and",
        "and",
        _COMPILER_TESTS + "test_fusion.py",
    ),
    Fault(
        "lifetimes: a result overwrites an operand that a later step reads",
        _COMPILER + "lifetimes.py",
        "if not old.last == step == new.first:",
        "if not step == new.first:",
        _COMPILER_TESTS + "test_lifetimes.py",
    ),
    Fault(
        "chains: operands are taken in reverse order",
        _COMPILER + "chains.py",
        "tuple([None if v is None else numbers[v] for v in _operands(node)])",
        "tuple([None if v is None else numbers[v] for v in _operands(node)][::-1])",
        _COMPILER_TESTS + "test_chains.py",
    ),
    Fault(
        "softmax on CPU: the largest element of a row is not subtracted",
        _CPU + "kernels/softmax.py",
        "load(0, -inf) - peaks[elements.column])",
        "load(0, -inf))",
        _CPU_TESTS + "test_softmax.py",
    ),
    Fault(
        "Winograd on CPU: the last row of each tile lacks a term",
        _CPU + "kernels/toom_cook.py",
        "if power == outputs - 1:",
        "if power == outputs:",
        _CPU_TESTS + "test_winograd.py",
    ),
    Fault(
        "matrix product on CPU: the last, partial block of columns is not computed",
        _CPU + "kernels/gemm.py",
        "-(-self.rows // row_block) * -(-self.columns // column_block)",
        "-(-self.rows // row_block) * max(1, self.columns // column_block)",
        _CPU_TESTS + "test_matmul.py",
    ),
    Fault(
        "8-bit products on CPU: the zero point of weights is ignored",
        _CPU + "lowering/int8_operands.py",
        "w.astype(np.int16) - zero.astype(np.int16)",
        "w.astype(np.int16)",
        _CPU_TESTS + "test_quantized.py",
    ),
    Fault(
        "threads: the last chunk of a step runs past the end of its tasks",
        _CPU + "runtime/work_stealing.py",
        "end = (begin + step[StepField.GRAIN]).minimum(step[StepField.TASKS])",
        "end = begin + step[StepField.GRAIN]",
        _CPU_TESTS + "test_runtime.py",
    ),
    Fault(
        "threads: on ARM, a thread may read results of a step before they are there",
        _CPU + "runtime/work_stealing.py",
        'fetch("sub", given_back, "acq_rel")',
        'fetch("sub", given_back, "release")',
        _CPU_TESTS + "test_memory_order.py",
    ),
    Fault(
        "threads: a sleeping thread may miss that it is woken",
        _CPU + "runtime/work_stealing.py",
        'pool.at(PoolField.SLEEPERS).load("seq_cst")',
        'pool.at(PoolField.SLEEPERS).load("acquire")',
        _CPU_TESTS + "test_memory_order.py",
    ),
    Fault(
        "threads: on ARM, a run may begin with the arguments of the last one",
        _CPU + "runtime/native_code.py",
        'busy.store(0, "release")',
        'busy.store(0, "monotonic")',
        _CPU_TESTS + "test_memory_order.py",
    ),
    Fault(
        "kernel cache: kernels of another version of the sources are used",
        _CPU + "machine_code/cache.py",
        'f"{key}\\n{code_version()}".encode()',
        "key.encode()",
        _CPU_TESTS + "test_cache.py",
    ),
    Fault(
        "emulation: the process that compiles has the variables of the emulated Python",
        _CPU + "machine_code/remote.py",
        '("PYTHON", "LD_", "QEMU_", VARIABLE)',
        '("LD_", "QEMU_", VARIABLE)',
        _CPU_TESTS + "test_remote.py",
    ),
    Fault(
        "emulation: kernels come from a process with other sources",
        _CPU + "machine_code/compile_server.py",
        "version != code_version()",
        "not version",
        _CPU_TESTS + "test_remote.py",
    ),
    Fault(
        "compiler: a version of llvmlite that is not supported compiles",
        _CPU + "machine_code/llvm.py",
        "<= numbers < SUPPORTED[1]",
        "<= numbers <= SUPPORTED[1]",
        _CPU_TESTS + "test_llvmlite.py",
    ),
    Fault(
        "compiler: the garbage collector closes a module after its context, which ends the process",
        _CPU + "machine_code/objects.py",
        "    with llvm.parse_assembly(module_ir, llvm.create_context()) as module:",
        "    for module in [llvm.parse_assembly(module_ir, llvm.create_context())]:",
        _CPU_TESTS + "test_llvmlite.py",
    ),
    Fault(
        "saved programs: one saved for another processor is used",
        _CPU + "saved/restoring.py",
        'if saved["compatibility"] != compatibility:',
        "if False:",
        _CPU_TESTS + "test_saved_refusals.py",
    ),
    Fault(
        "depthwise convolution on CPU: dilation is ignored",
        _CPU + "kernels/depthwise.py",
        "output * self.stride + tap * self.dilation",
        "output * self.stride + tap",
        _CPU_TESTS + "test_depthwise.py",
    ),
    Fault(
        "x86: features that Linux names otherwise are not recognised",
        "plugins/lite_x86/src/lite_x86/detect.py",
        "_LINUX_NAMES.get(flag, flag)",
        "flag",
        "plugins/lite_x86/tests/test_detect.py",
    ),
    Fault(
        "x86: an MKL library that cannot be loaded is an error",
        "plugins/lite_x86/src/lite_x86/mkl.py",
        "except OSError as error:\n                rejected.add(file)",
        "except KeyError as error:\n                rejected.add(file)",
        "plugins/lite_x86/tests/test_mkl.py",
    ),
    Fault(
        "Winograd on OpenCL: the last row of each tile lacks a term",
        _OPENCL + "kernels/winograd_output.cl",
        "to[3 * to_step] = q + s * 8 + f;",
        "to[3 * to_step] = q + s * 8;",
        _OPENCL_TESTS + "test_winograd.py",
    ),
    Fault(
        "pooling on OpenCL: the left padding is that of the top",
        _OPENCL + "kernels/pooling.cl",
        "pixel % y_width * stride_x - left;",
        "pixel % y_width * stride_x - top;",
        _OPENCL_TESTS + "test_pooling.py",
    ),
    Fault(
        "matrix product on OpenCL: strides of the left operand are ignored",
        _OPENCL + "kernels/matmul_plain.cl",
        "LOAD_A(left, k * a_depth)",
        "LOAD_A(left, k)",
        _OPENCL_TESTS + "test_matmul.py",
    ),
    Fault(
        "OpenCL cache: a damaged binary is handed to the driver",
        _OPENCL + "programs/binary_cache.py",
        "if entry[: _HEADER.size] == _HEADER.pack(_MAGIC, hashlib.sha256(binary).digest()):",
        "if len(entry) > _HEADER.size:",
        _OPENCL_TESTS + "test_programs.py",
    ),
    Fault(
        "ONNX: external data is read from outside the model's folder",
        _ONNX + "reader/external_data.py",
        "or not any(path.is_relative_to(root) for root in allowed):",
        ":",
        "plugins/lite_onnx/tests/test_reader.py",
    ),
    Fault(
        "ONNX: names that are not UTF-8 reach the lowering",
        _ONNX + "reader/model_file.py",
        "if not isinstance(name, str)), None)",
        "if not name), None)",
        "plugins/lite_onnx/tests/test_reader.py::test_names_that_are_not_utf_8_are_errors",
    ),
    Fault(
        "ONNX: Softmax of opset 11 and 12 goes over one axis only",
        _ONNX + "lowering/operators/ai_onnx/versions/normalization.py",
        '@adapts("Softmax", "LogSoftmax", "Hardmax", until=12)',
        '@adapts("Softmax", "LogSoftmax", "Hardmax", until=10)',
        "plugins/lite_onnx/tests/test_versions.py",
    ),
    Fault(
        "Paddle: a pool with a billion bins hangs",
        _PADDLE + "lowering/limits.py",
        "if count > _MOST_PARTS:",
        "if count > 1 << 40:",
        "tests/test_fuzz.py",
    ),
    Fault(
        "Paddle: padding SAME puts the odd element at the beginning",
        _PADDLE + "lowering/windows.py",
        "pads.append((total // 2, total - total // 2))",
        "pads.append((total - total // 2, total // 2))",
        "plugins/lite_paddle/tests/test_lowering_pooling.py",
    ),
    Fault(
        "Paddle: an average over uneven padding counts all of it",
        _PADDLE + "lowering/operators/pooling.py",
        "if not geometry.ceil_mode and all(e <= b for b, e in geometry.pads):",
        "if not geometry.ceil_mode:",
        "plugins/lite_paddle/tests/test_lowering_pooling.py",
    ),
    Fault(
        "Paddle: the sum of int32 stays int32",
        _PADDLE + "lowering/operators/reduction.py",
        "widens = sums_widely and op.type",
        "widens = not sums_widely and op.type",
        "plugins/lite_paddle/tests/test_scan.py",
    ),
    Fault(
        "Paddle: rounding away from zero reaches the lowest number",
        _PADDLE + "lowering/operators/quantization.py",
        "for b in (-n - (round_type == 0), n)]",
        "for b in (-n - 1, n)]",
        "plugins/lite_paddle/tests/test_scan.py",
    ),
    Fault(
        "Paddle: inputs are in the order of the file, not of their columns",
        _PADDLE + "reader/legacy.py",
        "for _, name, value in sorted(blocks.feeds, key=lambda feed: feed[0])]",
        "for _, name, value in blocks.feeds]",
        "plugins/lite_paddle/tests/test_reader_legacy.py",
    ),
    Fault(
        "Paddle: a truncated parameter file is not noticed",
        _PADDLE + "reader/parameters.py",
        "byte_size > self.size - position:\n            raise self._damaged(\n                offset,",
        "False:\n            raise self._damaged(\n                offset,",
        "plugins/lite_paddle/tests/test_reader_parameters.py",
    ),
    Fault(
        "conversion: a target that computes something else is not noticed",
        _TOOLS + "conversion/verification.py",
        "return largest_difference(expected, found)",
        "return 0.0",
        "plugins/lite_tools/tests/test_convert.py",
    ),
    Fault(
        "commands: a missing backend ends with the exit code of a failure",
        _TOOLS + "commands/exit_codes.py",
        "EXIT_UNAVAILABLE = 3",
        "EXIT_UNAVAILABLE = 1",
        "tests/test_docs.py",
    ),
    Fault(
        "conformance: writing past the end of an output is not noticed",
        _SUITE + "drive/guards.py",
        'return f"{int(after[-1]) + 1} byte(s) past its end" if after.size else None',
        "return None",
        "conformance/tests/test_wrong_backends.py",
    ),
    Fault(
        "conformance: NaN counts as right",
        _SUITE + "judge/compare.py",
        "(np.isnan(truth) & np.isnan(found))",
        "np.isnan(found)",
        "conformance/tests/test_compare.py",
    ),
    Fault(
        "conformance: an error for an index out of range may hide the node",
        _SUITE + "cases/out_of_range.py",
        "if node not in str(failure.__cause__):",
        "if False:",
        "conformance/tests/test_wrong_ties.py",
    ),
    Fault(
        "conformance: elements beside an index out of range are not compared",
        _SUITE + "cases/out_of_range.py",
        "masked = [replace(expected[0], unspecified=affected)]",
        "masked = [replace(expected[0], unspecified=np.ones_like(affected))]",
        "conformance/tests/test_wrong_ties.py",
    ),
    Fault(
        "conformance: the sign of a zero that was only moved does not count",
        _SUITE + "judge/compare.py",
        "same &= np.isnan(truth) | (np.signbit(truth) == np.signbit(found))",
        "same &= True",
        "conformance/tests/test_wrong_special.py",
    ),
    Fault(
        "conformance: every element of a case with unspecified ones passes",
        _SUITE + "judge/compare.py",
        "wrong &= ~expected.unspecified",
        "wrong &= False",
        "conformance/tests/test_wrong_special.py",
    ),
    Fault(
        "conformance: a refusal without a reason is accepted",
        _SUITE + "drive/subject.py",
        "if not isinstance(answer.reason, str) or not answer.reason.strip():",
        "if False:",
        "conformance/tests/test_wrong_backends.py",
    ),
    Fault(
        "conformance: only the first output of a restored program is compared",
        _SUITE + "drive/subject.py",
        "for first, second in zip(one, other):",
        "for first, second in list(zip(one, other))[:1]:",
        "conformance/tests/test_planted_bugs.py",
    ),
    Fault(
        "constants: strided ones reach backends",
        _CORE + "ir/graph.py",
        "if not (array.flags.aligned and array.flags.c_contiguous):",
        "if not array.flags.aligned:",
        "conformance/tests/test_planted_bugs.py",
    ),
    Fault(
        "trust: the code of any file is used",
        _CORE + "container/reader.py",
        "return is_trusted(self.code_digest, self._mapped.table.seal)",
        "return True",
        _CORE_TESTS + "test_trust.py",
    ),
    Fault(
        "trust: the seal does not cover the graph",
        _TOOLS + "writing/model_file.py",
        '"graph": _Content(to_json(encoder.document)),',
        '"graph": _Content(to_json(encoder.document), False),',
        _CORE_TESTS + "test_trust.py",
    ),
    Fault(
        "trust: sealed sections are read from the file again after the check",
        _CORE + "container/mapping.py",
        "            if section.sealed:\n",
        "            if False:\n",
        _CORE_TESTS + "test_trust.py",
    ),
    Fault(
        "levels: code for another processor is used",
        _CORE + "session/prepared.py",
        "if not lacks:",
        "if lacks or not lacks:",
        "tests/test_file_code.py",
    ),
    Fault(
        "weights: a constant in panels is read back in another order",
        _CORE + "ir/panels.py",
        "split[:] = matrices.reshape(split.shape)",
        "split[:] = matrices[::-1, :, ::-1].reshape(split.shape)",
        "tests/test_file_code.py",
    ),
    Fault(
        "inputs: of two arrays for one input, one is taken without a word",
        _CORE + "session/arguments.py",
        "for name in named if name in (given or {})]",
        "for name in named if name in ()]",
        _CORE_TESTS + "test_refused_arguments.py::test_an_input_cannot_be_given_twice",
    ),
    Fault(
        "paths: an empty path stands for the working folder",
        _CORE + "checks.py",
        "isinstance(text, str) and bool(text) and",
        "isinstance(text, str) and",
        _CORE_TESTS + "test_refused_arguments.py::test_paths",
    ),
    Fault(
        "paths: a reader waits for a pipe",
        _CORE + "checks.py",
        "if what := _ENDLESS.get(stat.S_IFMT(mode)):",
        "if (what := _ENDLESS.get(stat.S_IFMT(mode))) and False:",
        "tests/test_hostile_paths.py::test_pipes_sockets_and_devices_are_not_opened",
    ),
    Fault(
        "time limit: a loop does not test it",
        _CORE + "ops/control.py",
        '    check_time("iteration {}".format, iteration)\n',
        "",
        _CORE_TESTS + "test_time_limit.py::test_an_endless_loop_ends",
    ),
    Fault(
        "functions: a call is counted as one node",
        _ONNX + "lowering/expansion.py",
        "count, height = count + 1 + below[0],",
        "count, height = count + 1,",
        "plugins/lite_onnx/tests/test_hostile.py",
    ),
    Fault(
        "lite-cpu: vectors at the edge of adjacent rows are summed in another order than the others",
        _CPU + "kernels/rows.py",
        "self.unroll = _ACROSS if layout.vectors is Vectors.ACROSS else UNROLL",
        "self.unroll = UNROLL if columns == 1 else 1",
        _CPU_TESTS + "test_equal_columns.py::test_sums_of_channels_last_images",
    ),
    Fault(
        "recurrent: the length of a sequence leads out of its tensors",
        _CPU + "kernels/recurrent.py",
        "return k.maximum(k.minimum(length, steps), 0)",
        "return k.maximum(length, 0)",
        _CPU_TESTS + "test_recurrent.py::test_lengths_out_of_range_are_errors",
    ),
    Fault(
        "onnxruntime: a branch that no run takes must fit the sizes of the inputs",
        "plugins/lite_onnxruntime/src/lite_onnxruntime/backend.py",
        'if not any(node.op == "If" for scope in graph.walk() for node in scope.nodes):',
        "if True:",
        "plugins/lite_onnxruntime/tests/test_backend.py",
    ),
    Fault(
        "array files: an array is as large as its header claims",
        _TOOLS + "commands/array_files.py",
        "if expected != found:",
        "if expected < found:",
        "plugins/lite_tools/tests/test_array_files.py",
    ),
    Fault(
        "precision by node: the last pattern that matches decides",
        _CORE + "schedule/precision.py",
        "for p, found in self.patterns if fnmatch",
        "for p, found in reversed(self.patterns) if fnmatch",
        _CORE_TESTS + "test_precision_by_node.py",
    ),
    Fault(
        "precision by node: a file's partitions are restored with the precision of most nodes",
        _CORE + "session/prepared.py",
        'self._precision.variant(self._by_name[record.backend], nodes[0].name if nodes else "")',
        "self._by_name[record.backend]",
        "plugins/lite_tools/tests/test_convert.py::test_file_keeps_the_precision_of_each_node",
    ),
    Fault(
        "bisection: the search ends with the first of two nodes that are wrong only together",
        _TOOLS + "bisecting/search.py",
        "if rest and ask(frozenset(needed)):",
        "if rest:",
        "plugins/lite_tools/tests/test_bisect.py::test_nodes_that_are_wrong_only_together_are_both_found",
    ),
    Fault(
        "bisection: nodes of the side in doubt run with the options of the trusted side",
        _TOOLS + "bisecting/mixing.py",
        "MappingProxyType({**changes, **c.changes})",
        "MappingProxyType({**c.changes})",
        "plugins/lite_tools/tests/test_bisect.py::test_node_that_is_wrong_with_several_threads_is_named",
    ),
    Fault(
        "bisection: answers of other kernels are used",
        _TOOLS + "bisecting/trials.py",
        "            self.answers.forget()\n",
        "            pass\n",
        "plugins/lite_tools/tests/test_bisect.py::test_answers_about_other_kernels_are_forgotten",
    ),
    Fault(
        "log: kernels are not logged before they run",
        _CORE + "schedule/plan.py",
        "is_logged = logger.isEnabledFor(logging.DEBUG)",
        "is_logged = False",
        _CORE_TESTS + "test_run_log.py::test_last_line_of_a_crash_names_the_kernel",
    ),
    Fault(
        "notes: a precision that a device does not compute in is not said",
        _CORE + "session/shortfalls.py",
        'get(asked, "the model\'s types")',
        "get(asked, asked)",
        _CORE_TESTS + "test_shortfalls.py::test_precision_that_a_backend_ignores",
    ),
    Fault(
        "reports: private paths stay",
        _TOOLS + "reporting/scrubbing.py",
        "text = _PATH.sub(self._path, text)",
        "pass",
        "plugins/lite_tools/tests/test_scrubbing.py",
    ),
    Fault(
        "reports: the weights are in them without being asked for",
        _TOOLS + "reporting/substitutes.py",
        "return np.resize(drawn.astype(array.dtype), array.shape)",
        "return array",
        "plugins/lite_tools/tests/test_scrubbing.py::test_weights_are_replaced",
    ),
)
