"""torch.distributed over host NCCL without nbox: the baseline that the other cases compare with. All ranks are real."""
from harness import all_said, main, plain

# without split_group: PyTorch 2.11 gives groups of one rank a name that it has already given
ALL = ["plain", "coalesced", "objects", "alltoall", "p2p", "groups", "barriers"]


def collectives_have_right_results():
    """Every collective among 4 processes, results checked"""
    all_said(plain(4, "collectives.py", ALL), [*ALL, "destroy"], range(4))


def every_form_of_init_works():
    """init_process_group in every form"""
    forms = ["mesh", "env", "eager", "default", "both"]
    all_said(plain(2, "init.py", forms), forms, range(2))


main(collectives_have_right_results, every_form_of_init_works)
