"""The tour in Korean, for the readers of the guides."""

from __future__ import annotations

from typing import NamedTuple


class Text(NamedTuple):
    """What is said at one stop."""

    title: str
    says: str
    happens: str


TEXTS = {
    "slice-shares-memory": Text(
        "슬라이스는 메모리를 공유하고, clone()이 원본을 지켜 줍니다",
        "슬라이스는 뷰입니다. clone하지 않으면 슬라이스에 쓴 값이 원본을 바꿉니다.",
        "슬라이스는 x의 스토리지를 그대로 가리키고, clone은 자기 스토리지를 따로 가집니다.",
    ),
    "index-copies": Text(
        "불리언 마스크와 정수 리스트로 인덱싱하면 복사됩니다",
        "고급 인덱싱은 복사본을 주므로 거기에 써도 원본은 안전합니다.",
        "그런 인덱싱 결과에 in-place 메서드를 부르면 곧 버려질 복사본에 쓰게 됩니다. 대입문으로 쓰면 "
        "원본에 반영됩니다.",
    ),
    "array-for-a-plot": Text(
        "그래프용 배열: detach().cpu().clone().numpy()",
        "numpy() 전에 clone하지 않으면, 그래프로 그린 배열이 텐서를 따라 바뀝니다.",
        "CPU 텐서라면 cpu()는 텐서 자신을, numpy()는 뷰를 돌려줍니다. GPU 텐서라면 cpu()에서 이미 "
        "복사했으므로, clone은 불필요한 두 번째 복사입니다.",
    ),
    "zero-a-slice": Text(
        "슬라이스에 zero_()를 불러도 메모리를 새로 할당하지 않습니다",
        "슬라이스에 in-place 연산을 쓰면 메모리를 아낄 수 있습니다.",
        "슬라이스는 작은 Python 객체일 뿐이고, 원소는 x의 것입니다.",
    ),
    "view-or-reshape": Text(
        "전치한 텐서에서 view()는 실패하고 reshape()는 복사합니다",
        "view()가 오류를 내면 reshape()를 쓰세요.",
        "전치된 원소를 순서대로 훑는 stride가 없어서 reshape()는 복사했고, 그 결과에 쓴 값은 x에 "
        "반영되지 않습니다. contiguous 텐서라면 같은 코드가 뷰를 돌려줍니다.",
    ),
    "one-channel": Text(
        "채널 하나만: img[0].clone()",
        "이미지 없이 채널만 남기려면 clone하세요.",
        "채널 하나의 뷰만 남아 있어도 세 채널의 메모리가 모두 해제되지 않습니다.",
    ),
    "comparing-addresses": Text(
        "data_ptr()를 비교해 메모리 공유 여부 확인하기",
        "data_ptr()가 같으면 두 텐서는 메모리를 공유합니다.",
        "data_ptr()는 텐서가 시작하는 주소입니다. 시작 주소가 다른 두 슬라이스도 겹칠 수 있습니다.",
    ),
    "deepcopy-is-slow": Text(
        "텐서의 deepcopy는 느리니 clone().detach()로 대신하기",
        "큰 텐서에는 copy.deepcopy를 피하세요. x.clone().detach()가 더 빠릅니다.",
        "deepcopy의 비용은 원소 수가 아니라 객체 수와 새로 할당되는 페이지 수에 비례합니다. 큰 텐서 하나라면 "
        "clone과 다르지 않고, 작은 텐서 수천 개라면 Python 코드를 실행하는 시간입니다. detach().clone()은 "
        "버려질 clone을 그래프에 기록하지 않고 같은 복사본을 만듭니다.",
    ),
    "read-only": Text(
        "읽기 전용 뷰",
        "writeable 플래그를 끈 NumPy 뷰를 넘겨주세요.",
        "이 플래그를 지키는 것은 NumPy뿐입니다. torch는 경고만 하고 그대로 쓰며, "
        "텐서에는 그런 플래그가 없습니다.",
    ),
    "copy-a-model": Text(
        "클래스를 다시 만들고 state_dict()를 넣어 모델 복사하기",
        "새로 만들어 가중치를 넣으세요: new = type(model)(), new.load_state_dict(model.state_dict()).",
        "생성자에 인자가 없을 때만 통하고, 파라미터나 버퍼가 아닌 것은 복사되지 않습니다.",
    ),
    "copy-of-a-part": Text(
        "텐서 일부를 복사하고 저장하고 pickle하기",
        "deepcopy는 슬라이스의 독립된 복사본을 만듭니다.",
        "독립된 복사본이지만 크기는 원본 전체와 같습니다. deepcopy, save, pickle은 스토리지를 통째로 "
        "가져가는데, 이 슬라이스는 그 1%일 뿐입니다.",
    ),
    "share-across-processes": Text(
        "share_memory_()로 프로세스 사이에 공유하기",
        "share_memory_()를 부른 뒤 복사 없이 다른 프로세스에 넘기세요.",
        "스토리지는 통째로 공유되거나 전혀 공유되지 않습니다. 4,000바이트가 모두 공유 메모리로 "
        "옮겨졌고, 받는 쪽은 그 전부에 접근할 수 있습니다.",
    ),
    "pickle-protocol-5": Text(
        "큰 데이터에는 pickle 프로토콜 5",
        "프로토콜 5는 큰 버퍼를 복사 없이 따로 보냅니다.",
        "torch는 스토리지를 바이트 문자열 하나로 만들 뿐 버퍼를 따로 내놓지 않습니다. "
        "모든 데이터가 두 번 복사됩니다.",
    ),
    "own-deepcopy-method": Text(
        "무거운 멤버를 위한 __deepcopy__ 메서드",
        "__deepcopy__를 구현해 새 객체를 만들고, 무거운 것은 공유하거나 clone하세요.",
        "생성자를 부르는 메서드는 그 뒤에 바뀐 것을 잃어버리고, memo를 거치지 않고 멤버를 clone하는 메서드는 "
        "다른 곳에서도 쓰는 텐서 하나를 둘로 만듭니다.",
    ),
    "what-writes-in-place": Text(
        "in-place 연산, zero_grad(), step(): 같은 객체에 쓰는 것은 무엇인가",
        "이름이 _로 끝나는 메서드와 옵티마이저의 step은 텐서 자신을 바꿉니다.",
        "fused step은 autograd가 쓰기를 알아채는 데 쓰는 버전 카운터를 올리지 않고 썼습니다. 아직 q가 필요한 "
        "backward가 있다면 새 값으로 계산하고도 오류를 내지 않습니다. zero_grad()는 아무것도 쓰지 않습니다. "
        "기울기를 놓아 줄 뿐이고, set_to_none=False일 때만 0으로 채웁니다.",
    ),
    "leaf-in-place": Text(
        "leaf에 in-place로 쓰면 오류, detach()를 먼저 하면 안전하다는 조언",
        "in-place로 쓰기 전에 x.detach()를 부르세요.",
        "detach()는 같은 메모리를 가리키는 다른 텐서를 돌려줍니다. 쓰기는 오류 없이 되고, 원본이 바뀝니다.",
    ),
    "augmentation": Text(
        "clone()으로 미분 가능한 데이터 증강",
        "in-place로 쓰기 전에 clone하면 기울기가 그대로 흐릅니다.",
        "exp()는 backward를 위해 출력을 저장해 둡니다. clone은 그래프 안에 있으면서도 값을 써도 되지만, "
        "출력 자체에 쓰면 안 됩니다.",
    ),
    "modified-by-an-inplace-operation": Text(
        "one of the variables needed for gradient computation has been modified",
        "in-place 연산을 찾아 다른 연산으로 바꾸거나 clone하세요.",
        "이 오류는 값을 쓴 줄을 알려 주지 않고, anomaly mode를 켜지 않으면 저장한 줄도 알려 주지 않습니다. "
        "`tensafe run`은 두 줄을 모두 알려 줍니다.",
    ),
    "detach-cuts-clone-keeps": Text(
        "detach()는 그래프를 끊고 clone()은 이어 줍니다",
        "detach()를 거치면 기울기가 None이고, clone()을 거치면 기울기가 전달됩니다.",
        "두 말 모두 맞지만, 가이드의 첫 예제는 None을 출력하지 않고 오류를 냅니다. 거슬러 올라갈 "
        "그래프가 없기 때문입니다.",
    ),
    "output-to-numpy": Text(
        "output.detach().cpu().numpy()",
        "numpy() 전에 detach하세요.",
        "CPU에서 이 배열은 출력의 뷰입니다. 한쪽에 쓰면 다른 쪽도 바뀝니다.",
    ),
    "gan-discriminator": Text(
        "판별자에는 gen.detach()를 넣기",
        "판별자를 학습하는 step에서는 생성된 배치를 detach하세요.",
        "그러지 않으면 판별자의 step마다 backward가 생성자까지 거슬러 올라가 기울기를 남기고, 생성자의 다음 "
        "step이 거기에 자기 기울기를 더합니다.",
    ),
    "weight-history": Text(
        "clone().detach()로 가중치 기록 남기기",
        "가중치는 clone().detach()로 보관하세요.",
        'state_dict()만 부르면 살아 있는 텐서를 그대로 받습니다. "저장한" 가중치가 step과 함께 바뀌었습니다.',
    ),
}
